"""What a detached terminal keeps of its output for those who attach later."""

from __future__ import annotations

from teams_cli.extensions.terminals.wrapper import Modes, Screen, terminal_replies


def test_modes_are_set_again_and_undone() -> None:
    modes = Modes()
    for part in (b"\x1b[?2004h\x1b[?1000;1006h\x1b[?25l\x1b[>1u\x1b[>4;2m", b"\x1b[?10", b"06l\x1b[?25h\x1b[?25l"):
        modes.feed(part)
    assert modes.setting() == b"\x1b[?2004h\x1b[?1000h\x1b[?25l\x1b[>1u\x1b[>4;2m"
    assert modes.resetting() == b"\x1b[0m\x1b[<1u\x1b[?2004l\x1b[?1000l\x1b[?25h\x1b[>4m"
    modes.feed(b"\x1b[?1049h\x1b[<u\x1b[?25h")
    resetting = modes.resetting()
    assert modes.is_alternate_screen and resetting.endswith(b"\x1b[?1049l") and b"\x1b[<" not in resetting
    assert Modes().setting() == b""


def test_earlier_output_is_shown_again_without_its_side_effects() -> None:
    screen = Screen()
    screen.feed(b"old\x1b[2J\x1b[Hone\x1b[6n\x1b[c\x1b[?u\x1b]52;c;eA==\x07\x1b]8;;x\x1b\\link\x1b[31m\x1b[2 q")
    screen.feed(b"\x1b[?2004h two\x1b[3")
    assert screen.drawing() == b"\x1b[Hone\x1b]8;;x\x1b\\link\x1b[31m\x1b[2 q two\x1b[?2004h"
    screen.feed(b"3m\x1b[?1049hother")
    assert screen.drawing() == b"\x1b[?1049hother\x1b[?2004h"
    screen.feed(b"\x1bPtmux;\x1b\x1bP+q4d73\x1b\x1b\\\x1b\\!\x1b_Gi=1;AAAA\x1b\\?")  # one that is handed on by tmux
    assert screen.drawing() == b"\x1b[?1049hother!?\x1b[?2004h"


def test_terminal_queries_are_answered_while_nobody_watches() -> None:
    assert terminal_replies(b"\x1b[6n text \x1b[c\x1b[0c\x1b[5n\x1b[31m") == b"\x1b[1;1R\x1b[?62c\x1b[?62c\x1b[0n"
