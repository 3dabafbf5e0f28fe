"""Marks the branches of a module's source, so that running it says which of them were taken.

    if wanted:            if wanted:
        give()     ->         hits[7] = 1
                              give()
                          else:
                              hits[8] = 1

Every way out of an `if`, a loop, an `except`, a `case`, a condition inside an expression and every function gets a
number of its own: for structured code that is edge coverage. What an equality compares is noted as well, so that a
mutation can put in what was missing; against a constant, how near it came counts as coverage.

Loops spend steps of a budget. A single input that uses it up is a fault, found without looking at a clock.
"""

import ast
from array import array

STEPS_OF_ONE_INPUT = 2_000_000
PAIRS_KEPT = 256
NEARNESS_SLOTS = 16
LONGEST_COMPARED = 64
_NAMES = ("_fuzz_hits", "_fuzz_mark", "_fuzz_steps", "_fuzz_equal", "_fuzz_unequal")

Pair = tuple[int, int] | tuple[bytes, bytes]


class Coverage:
    """What was reached since the last `restart`. Numbers are given out in the order in which modules load."""

    def __init__(self) -> None:
        self.hits = bytearray()
        self.places: list[str] = []
        self.nearness: set[int] = set()
        self.pairs: dict[int, Pair] = {}
        self._variable_sites = 0
        self.steps = array("Q", [STEPS_OF_ONE_INPUT])

    def new_edge(self, place: str, count: int = 1) -> int:
        first = len(self.hits)
        self.hits.extend(bytes(count))
        self.places.extend([place] * count)
        return first

    def new_nearness(self, place: str) -> int:
        first = self.new_edge(place, NEARNESS_SLOTS)
        self.nearness.update(range(first, first + NEARNESS_SLOTS))
        return first

    def new_variable_site(self) -> int:
        """A comparison of two values that both depend on the input; its number is below zero."""
        self._variable_sites += 1
        return -self._variable_sites

    def restart(self) -> None:
        self.hits[:] = bytes(len(self.hits))
        self.pairs.clear()
        self.steps[0] = STEPS_OF_ONE_INPUT

    @property
    def steps_used(self) -> int:
        return STEPS_OF_ONE_INPUT - self.steps[0]

    def namespace(self) -> dict[str, object]:
        """What instrumented code finds among its globals."""
        return dict(zip(_NAMES, (self.hits, self.hits.__setitem__, self.steps, self.equal, self.unequal), strict=True))

    def equal(self, slot: int, left: object, right: object) -> object:
        result = left == right
        if result is False:
            self._note(slot, left, right)
        return result

    def unequal(self, slot: int, left: object, right: object) -> object:
        result = left != right
        if result is True:
            self._note(slot, left, right)
        return result

    def _note(self, slot: int, left: object, right: object) -> None:
        """The last pair of each comparison is kept: one in a loop must not drive out all others."""
        if type(left) is int and type(right) is int:
            self._keep(slot, (left, right))
            if slot >= 0:
                self.hits[slot + min((left ^ right).bit_count(), NEARNESS_SLOTS - 1)] = 1
            return
        first, second = _as_bytes(left), _as_bytes(right)
        if first is not None and second is not None:
            self._keep(slot, (first, second))
            if slot >= 0:
                self.hits[slot + min(_shared_prefix(first, second), NEARNESS_SLOTS - 1)] = 1

    def _keep(self, slot: int, pair: Pair) -> None:
        if len(self.pairs) < PAIRS_KEPT or slot in self.pairs:
            self.pairs[slot] = pair


def _as_bytes(value: object) -> bytes | None:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value[:LONGEST_COMPARED])
    return value[:LONGEST_COMPARED].encode("utf-8", "replace") if isinstance(value, str) else None


def _shared_prefix(first: bytes, second: bytes) -> int:
    for position, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return position
    return min(len(first), len(second))


class Instrumenter(ast.NodeTransformer):
    """Only what is inside of functions is marked: the rest runs once, when the module loads."""

    def __init__(self, coverage: Coverage, title: str) -> None:
        self._coverage = coverage
        self._title = title
        self._depth = 0

    def _edge(self, node: ast.AST, what: str) -> int:
        return self._coverage.new_edge(f"{self._title}:{getattr(node, 'lineno', 0)} {what}")

    def _mark(self, node: ast.AST, what: str) -> ast.stmt:
        target = ast.Subscript(ast.Name("_fuzz_hits", ast.Load()), ast.Constant(self._edge(node, what)), ast.Store())
        return ast.fix_missing_locations(ast.copy_location(ast.Assign([target], ast.Constant(1)), node))

    def _spend(self, node: ast.AST) -> ast.stmt:
        target = ast.Subscript(ast.Name("_fuzz_steps", ast.Load()), ast.Constant(0), ast.Store())
        spend = ast.AugAssign(target, ast.Sub(), ast.Constant(1))
        return ast.fix_missing_locations(ast.copy_location(spend, node))

    def _marked(self, value: ast.expr, what: str) -> ast.expr:
        """The same value, with a mark that is made when it is asked for."""
        call = ast.Call(
            ast.Name("_fuzz_mark", ast.Load()), [ast.Constant(self._edge(value, what)), ast.Constant(1)], []
        )
        return ast.fix_missing_locations(ast.copy_location(ast.BoolOp(ast.Or(), [call, value]), value))

    # Functions

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        is_documented = ast.get_docstring(node, clean=False) is not None
        node.body.insert(1 if is_documented else 0, self._mark(node.body[0], f"{node.name} begins"))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        node.body = self._marked(node.body, "lambda")
        return node

    # Statements

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if self._depth:
            node.body.insert(0, self._mark(node, "if"))
            node.orelse.insert(0, self._mark(node, "else"))
        return node

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> ast.AST:
        self.generic_visit(node)
        if self._depth:
            node.body[:0] = [self._spend(node), self._mark(node, "round")]
            node.orelse.insert(0, self._mark(node, "end of the loop"))
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        return self._loop(node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        return self._loop(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._loop(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.generic_visit(node)
        if self._depth:
            node.body.insert(0, self._mark(node, "except"))
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        self.generic_visit(node)
        if self._depth:
            node.body.insert(0, self._mark(node.body[0], "case"))
        return node

    # Expressions

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if self._depth:
            node.body = self._marked(node.body, "if")
            node.orelse = self._marked(node.orelse, "else")
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if self._depth:
            what = "and" if isinstance(node.op, ast.And) else "or"
            node.values[1:] = [self._marked(value, what) for value in node.values[1:]]
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if not self._depth or len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
            return node
        sides = (node.left, node.comparators[0])
        place = f"{self._title}:{node.lineno} compares"
        is_variable = not any(map(_is_constant, sides))
        slot = self._coverage.new_variable_site() if is_variable else self._coverage.new_nearness(place)
        name = "_fuzz_equal" if isinstance(node.ops[0], ast.Eq) else "_fuzz_unequal"
        call = ast.Call(ast.Name(name, ast.Load()), [ast.Constant(slot), *sides], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


def _is_constant(node: ast.expr) -> bool:
    """A literal, or a name that is written like a constant."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return isinstance(node, ast.Constant) or name.isupper()


def instrumented(source: str, filename: str, coverage: Coverage, title: str) -> ast.Module:
    tree = ast.parse(source, filename)
    Instrumenter(coverage, title).visit(tree)
    return tree
