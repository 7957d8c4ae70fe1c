"""Type stubs say what is there: comm.pyi, _core.pyi, and the annotations of all public names."""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from execution import execute

import mpress
from mpress import _core

PACKAGE = Path(mpress.__file__).parent
# In a process of its own, as it loads an MPI: what can be called of the module and its classes, as
# [class, name, kind, parameters, what it returns]. A parameter is [name, kind, default, type], of a
# default that is no plain value "...", and of one that there is none of null.
ASK = """
import inspect, json
import mpi4py
mpi4py.rc(initialize=False, finalize=False)
from mpress import comm

def parameter(one):
    default = None
    if one.default is not one.empty:
        plain = one.default is None or isinstance(one.default, (bool, int, str))
        default = repr(one.default) if plain else "..."
    kind = "" if one.annotation is one.empty else str(one.annotation)
    return one.name, one.kind.name, default, kind

found = []
for owner, kind in vars(comm).items():
    if not isinstance(kind, type) or kind.__module__ != comm.__name__:
        continue
    found.append((owner, "", "class", [base.__name__ for base in kind.__bases__], None))
    for name, value in vars(kind).items():
        value = getattr(value, "__func__", value)
        if isinstance(value, property):
            found.append((owner, name, "property", [], value.fset is not None))
        elif inspect.isfunction(value) and (name[0] != "_" or name in ("__init__", "__new__")):
            told = inspect.signature(value)
            returns = told.return_annotation
            parameters = [parameter(one) for one in told.parameters.values()]
            found.append((owner, name, "function", parameters, str(returns)))
print(json.dumps(found))
"""


def tree_of(name: str) -> ast.Module:
    return ast.parse((PACKAGE / f"{name}.pyi").read_text())


def parameters_of(function: ast.FunctionDef) -> list[tuple[str, str, str | None, str]]:
    """The same as ASK gives, of a stub."""
    arguments = function.args
    assert not (arguments.vararg or arguments.kwarg or arguments.posonlyargs), function.name
    places = arguments.args
    defaults = [None] * (len(places) - len(arguments.defaults)) + list(arguments.defaults)
    found = []
    for kind, ones, given in (
        ("POSITIONAL_OR_KEYWORD", places, defaults),
        ("KEYWORD_ONLY", arguments.kwonlyargs, arguments.kw_defaults),
    ):
        for one, default in zip(ones, given, strict=True):
            value = None if default is None else ast.unparse(default)
            written = "" if one.annotation is None else ast.unparse(one.annotation)
            found.append((one.arg, kind, value, written))
    return found


def members(of: ast.Module | ast.ClassDef, kind: type) -> dict[str, Any]:
    return {node.name: node for node in of.body if isinstance(node, kind)}


def decorators(function: ast.FunctionDef) -> set[str]:
    return {ast.unparse(one).split(".")[-1] for one in function.decorator_list}


def parts(written: str) -> set[str]:
    return {part.strip() for part in written.replace("MPI.", "").split("|")}


@pytest.fixture(scope="module")
def runtime() -> list[Any]:
    done = execute([sys.executable, "-c", ASK])
    assert done.status == 0, done.output
    return json.loads(done.stdout)


def test_classes_of_the_communicator(runtime):
    """The same classes, with the same bases; but for what only stubs need."""
    stubs = members(tree_of("comm"), ast.ClassDef)
    there = {owner: bases for owner, _, kind, bases, _ in runtime if kind == "class"}
    assert set(stubs) - {"_Shape"} == set(there) > {"Communicator", "Request", "CartCommunicator"}
    for name, bases in there.items():
        written = [ast.unparse(base).split(".")[-1] for base in stubs[name].bases]
        assert written == [base for base in bases if base not in ("object", "tuple")] or (
            written == ["NamedTuple"] and bases == ["tuple"]
        ), name


def test_methods_of_the_communicator(runtime):
    """Names, order, kinds and defaults of parameters; of types, all that mpi4py takes."""
    stubs = {
        (owner, name, "setter" in decorators(function)): function
        for owner, node in members(tree_of("comm"), ast.ClassDef).items()
        if owner != "_Shape"
        for function in node.body
        if isinstance(function, ast.FunctionDef)
        for name in [function.name]
    }
    compared = 0
    for owner, name, kind, parameters, returns in runtime:
        if kind == "class" or owner == "Outcome":  # whose fields another test reads
            continue
        function = stubs.pop((owner, name, False), None)
        assert function is not None, f"{owner}.{name} has no stub"
        if kind == "property":
            assert "property" in decorators(function), name
            assert bool(stubs.pop((owner, name, True), None)) == returns, f"{owner}.{name}: setter"
            continue
        written = parameters_of(function)
        assert [one[:2] for one in written] == [tuple(one[:2]) for one in parameters], name
        for (argument, _, own, _), (_, _, real, _) in zip(written, parameters, strict=True):
            # MPIs have numbers of their own for constants.
            assert own == real or (own == "..." and real), f"{owner}.{name}: {argument} = {own}"
        for (argument, _, _, own), (*_, real) in zip(written[1:], parameters[1:], strict=True):
            assert parts(real) <= parts(own), f"{owner}.{name}: {argument}"
        compared += 1
        wanted = ast.unparse(function.returns).replace("_New", "Any")
        assert wanted == returns.replace("MPI.", "") or wanted == returns, f"{owner}.{name}"
    assert not stubs, f"not there: {sorted(stubs)}"
    assert compared > 80


def test_fields_of_an_outcome():
    [node] = [n for n in tree_of("comm").body if getattr(n, "name", "") == "Outcome"]
    written = {one.target.id: ast.unparse(one.annotation) for one in node.body}
    module = ast.parse((PACKAGE / "comm.py").read_text())
    real = members(module, ast.ClassDef)["Outcome"]
    fields = [one for one in real.body if isinstance(one, ast.AnnAssign)]
    assert written == {one.target.id: ast.unparse(one.annotation) for one in fields} != {}


def nanobind_parameters(function: Any) -> list[tuple[str, str, str | None, str]]:
    """Of a function of the extension, which says what it is."""
    [(text, _, defaults)] = function.__nb_signature__
    for place in reversed(range(len(defaults or ()))):
        text = text.replace(f"\\{place}", repr(defaults[place]))
    # What is in brackets is of types, and no Python where these are arrays.
    brackets = re.compile(r"\[[^][]*\]")
    while brackets.search(text):
        text = brackets.sub("", text)
    [node] = ast.parse(f"{text}: ...").body
    return parameters_of(node)


def test_the_extension():
    tree = tree_of("_core")
    functions = members(tree, ast.FunctionDef)
    callables = {n: f for n, f in vars(_core).items() if hasattr(f, "__nb_signature__")}
    cuda = {name for name in functions if name.startswith("cuda_")}
    if not _core.build_info()["cuda"]:
        functions = {name: node for name, node in functions.items() if name not in cuda}
    assert set(functions) == set(callables) and len(functions) > 30
    for name, node in functions.items():
        written, real = parameters_of(node), nanobind_parameters(callables[name])
        assert [one[:3] for one in written] == [one[:3] for one in real], name
        for (argument, *_, own), (*_, kind) in zip(written, real, strict=True):
            if kind in ("int", "str", "float", "bool"):
                assert own == kind, f"{name}: {argument}"
    values = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    named = set(functions) | values | set(members(tree, ast.ClassDef)) | cuda | {"DeviceBuffer"}
    public = {name for name in vars(_core) if not name.startswith("_")}
    assert public <= named, public - named


@pytest.mark.parametrize("name", ["comm", "_core"])
def test_stubs_leave_nothing_unsaid(name):
    for node in ast.walk(tree_of(name)):
        if isinstance(node, ast.FunctionDef):
            assert node.returns is not None, node.name
            without = [one[0] for one in parameters_of(node) if not one[3]]
            assert without in ([], ["self"], ["cls"]), f"{node.name}: {without}"


def functions_of(value: Any) -> dict[str, Any]:
    """What can be called of a public name."""
    if not inspect.isclass(value):
        return {value.__name__: value}
    found = {}
    for name, member in vars(value).items():
        member = member.fget if isinstance(member, property) else member
        member = getattr(member, "__func__", member)
        is_public = not name.startswith("_") or name == "__init__"
        if is_public and isinstance(member, types.FunctionType):
            found[f"{value.__name__}.{name}"] = member
    return found


def test_each_public_name_has_a_type():
    with_stubs = ("Communicator", "Outcome", "PersistentRequest", "Request")
    assert set(with_stubs) < set(members(tree_of("comm"), ast.ClassDef))
    looked_at = set()
    for name in set(mpress.__all__) - set(with_stubs):
        if name.startswith("__"):
            assert name in mpress.__annotations__, name
            continue
        for called, function in functions_of(getattr(mpress, name)).items():
            if function.__code__.co_filename == "<string>":  # a dataclass's, made of its fields
                continue
            told = inspect.signature(function)
            without = [
                one.name
                for place, one in enumerate(told.parameters.values())
                if one.annotation is one.empty and not (place == 0 and one.name == "self")
            ]
            assert not without, f"{called}: {without}"
            assert told.return_annotation is not told.empty, called
            looked_at.add(called)
    assert looked_at > {"codec", "Codec.encode", "Codec.decode", "Encoded.ratio"}


def test_each_exchange_of_a_neighbourhood_has_a_type():
    """All three forms of each; mpress.iso needs an MPI, so its files are read."""
    told = {}
    for file in sorted((PACKAGE / "iso").glob("[a-z]*.py")):
        tree = ast.parse(file.read_text())
        for owner in [tree, *members(tree, ast.ClassDef).values()]:
            told |= {(owner, n): f for n, f in members(owner, ast.FunctionDef).items()}
    for (_, name), function in told.items():
        given = function.args
        every = [*given.args, *given.kwonlyargs, *([given.vararg] if given.vararg else [])]
        without = [one.arg for one in every if one.annotation is None]
        assert function.returns is not None and without in ([], ["self"]), name
    names = {name for _, name in told}
    for one in ("alltoall", "allgather"):
        for name in (one, f"{one}v", f"{one}w", "reduce", "scatter_reduce"):
            assert {name, f"i{name}", f"{name}_init"} <= names
