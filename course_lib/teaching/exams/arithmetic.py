"""Formulas in a bank of questions: numbers, names, arithmetic and a few functions. Nothing else is ever evaluated."""

import ast
import math
import operator
from collections.abc import Mapping

FUNCTIONS = {
    **{name: getattr(math, name) for name in "sqrt exp log log2 log10 sin cos tanh ceil floor comb".split()},
    **{"min": min, "max": max, "abs": abs, "round": round},
}
CONSTANTS = {"pi": math.pi}
OPERATORS = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv},
    **{ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.USub: operator.neg, ast.UAdd: operator.pos},
}
EXACT = 100  # powers of whole numbers up to this one are exact
MOST_VALUES = 10_000


def names_in(formula: str) -> set[str]:
    """The names of quantities that a formula uses. Raises ValueError if it is no formula."""
    used = {node.id for node in ast.walk(_parsed(formula)) if isinstance(node, ast.Name)}
    return used - FUNCTIONS.keys() - CONSTANTS.keys()


def evaluate(formula: str, values: Mapping[str, float]) -> float:
    """The finite number that a formula gives for these values.

    Raises ValueError for a name without a value, for anything but arithmetic, and for a result that is not finite.
    """
    try:
        result = _value(_parsed(formula).body, {**CONSTANTS, **values})
    except (ArithmeticError, TypeError, ValueError) as problem:
        raise ValueError(f"the formula `{formula.strip()}` cannot be computed: {problem}") from problem
    if isinstance(result, complex) or not math.isfinite(result):
        raise ValueError(f"the formula `{formula.strip()}` gives {result}, which is no finite number")
    return result


def values_of(spec: str, values: Mapping[str, float]) -> list[float]:
    """The numbers that a draw chooses from: `8 | 12`, `1 .. 9 step 2`, or a formula of earlier names."""
    if ".." not in spec:
        return [evaluate(one, values) for one in spec.split("|")]
    ends, _, step = spec.partition(" step ")
    first, last = (evaluate(end, values) for end in ends.split("..", 1))
    step = evaluate(step or "1", values)
    if step <= 0 or not 0 < (last - first) / step < MOST_VALUES:
        raise ValueError(f"the range `{spec}` has to go up, in at most {MOST_VALUES} steps")
    return [round(first + index * step, 12) for index in range(math.floor((last - first) / step + 1e-9) + 1)]


def _parsed(formula: str) -> ast.Expression:
    try:
        return ast.parse(formula.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise ValueError(f"`{formula.strip()}` is no formula") from problem


def _value(node: ast.AST, values: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name) if name in values:
            return values[name]
        case ast.Name(id=name):
            raise ValueError(f"nothing is called `{name}`; there is {', '.join(sorted(values))}")
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(operand, values))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            base, exponent = _value(left, values), _value(right, values)
            if abs(exponent) > EXACT or abs(base) > EXACT:  # as floats, so that no number gets a million digits
                return float(base) ** float(exponent)
            return base**exponent
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, values), _value(right, values))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_value(one, values) for one in args))
    raise ValueError(f"`{ast.unparse(node)}` is no arithmetic; the functions are {', '.join(sorted(FUNCTIONS))}")
