"""Assignments: release, submission, judging in a sandbox, gradebook, feedback, export."""
