"""What tests ask of the explorer of a playground."""


def reached(explorer, **state):
    """Which of its goals are reached in a state; what the state does not name is as at the start."""
    return [goal(explorer.state(**state)) for goal in explorer.goals]
