"""A mypy plugin for the compiled build: every class of fairq may have interpreted subclasses, be copied and pickled.

mypyc asks for a decorator at each class that may. Without it a user's policy could not be a subclass of ours, as it can
when nothing is compiled; so all of them have it, and the sources need not say so a hundred times.
"""

from collections.abc import Callable
from typing import Any

from mypy.nodes import ARG_NAMED, CallExpr, MypyFile, NameExpr
from mypy.plugin import ClassDefContext, Plugin

NAME, HOME = "mypyc_attr", "mypy_extensions"
WANTED = ["allow_interpreted_subclasses", "serializable"]


def open_class(context: ClassDefContext) -> None:
    if context.cls.info.calculate_metaclass_type() is not None:
        return  # an Enum or a Struct: not native anyway
    api: Any = context.api
    api.globals.setdefault(NAME, api.modules[HOME].names[NAME])
    if not any(isinstance(one, CallExpr) and one.arg_names == WANTED for one in context.cls.decorators):
        yes: list[Any] = [NameExpr("True") for _ in WANTED]
        context.cls.decorators.append(CallExpr(NameExpr(NAME), yes, [ARG_NAMED for _ in WANTED], list(WANTED)))


class OpenClasses(Plugin):
    def get_additional_deps(self, file: MypyFile) -> list[tuple[int, str, int]]:
        return [(10, HOME, -1)] if file.fullname.startswith("fairq.") else []

    def get_customize_class_mro_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        return open_class if fullname.startswith("fairq.") else None


def plugin(version: str) -> type[Plugin]:
    return OpenClasses
