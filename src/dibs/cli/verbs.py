"""The verbs of the command line, from the registry: the module of each, and the text of `dibs help`."""

from __future__ import annotations

from dibs.domain.verbs import typed_verbs

MODULES = {spec.name: f"dibs.cli.{spec.module or spec.group}" for spec in typed_verbs()}
ALIASES = {spec.alias: spec.name for spec in typed_verbs() if spec.alias}


def overview() -> str:
    """The text of `dibs help`."""
    lines, group = ["dibs: one task, one owner", "", "usage: dibs VERB [ARGUMENTS] [OPTIONS]"], ""
    for spec in typed_verbs():
        if spec.group != group:
            group = spec.group
            lines += ["", f"{group}:"]
        lines.append(f"  {spec.name:<10} {spec.title}")
    return "\n".join(lines) + FOOTER


FOOTER = """

common options, before or after the verb:
  --agent NAME       act as this agent (or DIBS_AGENT), with
  --session NAME     its session (or DIBS_SESSION, or the harness's own variable)
  --as NAME          act as this person
  --request-id ID    a retry with the same id returns the same answer
  --json             one JSON object instead of text
  --help             the arguments of the verb

exit: 0 done, 1 refused, 2 usage, 3 a gate is not met, 4 held by another session,
      5 lease lost, 70 a bug in dibs, 73 done but output lost, 74 storage failed,
      75 try again
"""
