"""Fast JSON: the parser of the standard library without importing `json`, which loads `re`.

A hook reads some JSON before every edit; importing `json` would cost it a quarter of its time.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

SPACE = " \t\n\r"


class _Plain:
    """Options for the C scanner: standard types, and no control characters in strings."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    memo: dict[str, str] = {}  # noqa: RUF012 - not shared: one parse at a time

    @staticmethod
    def parse_constant(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")


try:
    from _json import make_scanner

    scan: Any = make_scanner(_Plain)  # type: ignore[arg-type]  # any object with these fields
except (ImportError, AttributeError, TypeError):  # this Python has another internal API
    scan = None


def read(text: str) -> Any:
    """The parsed value. Raises ValueError if the text is not JSON."""
    if scan is None:
        import json

        return json.loads(text)
    start = len(text) - len(text.lstrip(SPACE))
    try:
        value, end = scan(text, start)
    except (StopIteration, RecursionError, SystemError):
        # SystemError: the scanner raises a class of `json`, which is not loaded.
        raise ValueError("no JSON") from None
    if text[end:].strip(SPACE):
        raise ValueError("something follows")
    return value


def listed(texts: Iterable[str]) -> str:
    """A JSON list of strings, exactly as `json.dumps` writes it."""
    try:
        from _json import encode_basestring
    except ImportError:
        import json

        return json.dumps(list(texts), ensure_ascii=False)
    return f"[{', '.join(map(encode_basestring, texts))}]"


def written(texts: Mapping[str, Any]) -> str:
    """A JSON object of strings and nested objects, exactly as `json.dumps` writes it."""
    try:
        from _json import encode_basestring_ascii as quoted
    except ImportError:
        import json

        return json.dumps(texts)
    pairs = (
        f"{quoted(name)}: {quoted(one) if isinstance(one, str) else written(one)}"
        for name, one in texts.items()
    )
    return f"{{{', '.join(pairs)}}}"
