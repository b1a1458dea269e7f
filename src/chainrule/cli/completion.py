"""Shell completion, written from the commands themselves."""

from __future__ import annotations

import argparse


def words(p: argparse.ArgumentParser) -> dict[str, tuple[str, list[str]]]:
    """The commands: their help, and the options and choices that may follow."""
    sub = next(a for a in p._actions if isinstance(a, argparse._SubParsersAction))
    helps = {c.dest: c.help or "" for c in sub._choices_actions}
    out = {}
    for name, q in sub.choices.items():
        follow = [o for a in q._actions for o in a.option_strings if o.startswith("--")]
        follow += [str(c) for a in q._actions if not a.option_strings for c in a.choices or ()]
        out[name] = (helps.get(name, ""), follow)
    return out


def script(shell: str, p: argparse.ArgumentParser) -> str:
    """The completion script of a shell."""
    commands = words(p)
    if shell == "fish":
        lines = [
            f"complete -c chainrule -n __fish_use_subcommand -f -a {n} -d '{h.replace(chr(39), '')}'"
            for n, (h, _) in commands.items()
        ]
        for n, (_, follow) in commands.items():
            for w in follow:
                flag = f"-l {w[2:]}" if w.startswith("--") else f"-f -a {w}"
                lines.append(f"complete -c chainrule -n '__fish_seen_subcommand_from {n}' {flag}")
        return "\n".join(lines)
    cases = "\n".join(f'    {n}) options="{" ".join(follow)}" ;;' for n, (_, follow) in commands.items())
    body = f"""_chainrule() {{
  local options=""
  case "${{COMP_WORDS[1]}}" in
{cases}
    *) [ "$COMP_CWORD" -eq 1 ] && options="--version --help {" ".join(commands)}" ;;
  esac
  [ "$COMP_CWORD" -eq 1 ] && options="--version --help {" ".join(commands)}"
  COMPREPLY=($(compgen -W "$options" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _chainrule chainrule"""
    return body if shell == "bash" else "autoload -U +X bashcompinit && bashcompinit\n" + body
