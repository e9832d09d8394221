"""Who may do what: the table of roles, roles of teams, of the user and of OpenCode, and asking the person."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from teams_cli import closing
from teams_cli.errors import AlreadyExists, InvalidValue, NeedsHuman, NotAllowed, TeamsError
from teams_cli.membership import joining, shutdowns
from teams_cli.messages import messages, reading
from teams_cli.messages.reading import Selection
from teams_cli.store.files.engine import FileStore
from teams_cli.tasks import changes as task_changes
from teams_cli.tasks import claims, plans, tasks
from teams_cli.tasks.changes import Edit
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence, role_definitions, roles, settings
from teams_cli.teams.config import Config
from teams_cli.teams.permission import Caller
from teams_cli.teams.teams import TEAM
from tests.support.cli import ALPHA, TIMEOUT, Cli, add_tasks, make_team, tree
from tests.support.stores import new_store
from tests.support.waits import at_once

NAMES = {"leader": "lea", "member": "bob", "task-manager": "mia", "human": "human"}


def workplace() -> FileStore:
    """A team with one member of each role, and cal, another member.

    task-1 is cal's, task-2 bob's and task-3 mia's; task-4 is free; task-5 (cal's) and task-6 (bob's) are completed.
    plan-1 is cal's. lea asked bob to shut down (shutdown-1), and human asked mia (shutdown-2). cal has sent a message
    to everybody; msg-1 to msg-5 are notices.
    """
    store = new_store()
    joining.spawn_team(store, ALPHA, Caller("lea"))
    for name, role in (("bob", None), ("mia", "task-manager"), ("cal", None)):
        joining.join(store, ALPHA, Caller(name), role)
    for n in range(1, 7):
        tasks.create(store, ALPHA, Caller("lea"), Task(team_name=ALPHA, title=f"number {n}", created_at=""))
    for n, owner in ((1, "cal"), (2, "bob"), (3, "mia"), (5, "cal"), (6, "bob")):
        claims.claim(store, ALPHA, Caller(owner), str(n))
    for n, owner in ((5, "cal"), (6, "bob")):
        task_changes.change_task(store, ALPHA, Caller(owner), str(n), Edit(status="completed"))
    plans.propose(store, ALPHA, Caller("cal"), "a plan")
    shutdowns.request(store, ALPHA, Caller("lea"), ["bob"])
    shutdowns.request(store, ALPHA, Caller("human"), ["mia"])
    for name in NAMES.values():
        messages.send(store, ALPHA, Caller("cal"), name, "hello")
    return store


def message_to(name: str) -> str:
    return f"msg-{6 + list(NAMES.values()).index(name)}"


def update(**changes: Any) -> Callable[[FileStore, Caller], object]:
    task = changes.pop("task")
    return lambda s, c: task_changes.change_task(s, ALPHA, c, task, Edit(**changes))


ALL, NONE = "leader member task-manager human", ""
TABLE: list[tuple[str, Callable[[FileStore, Caller], object], str]] = [
    # what, how it is done, who may
    ("send-message", lambda s, c: messages.send(s, ALPHA, c, "cal", "hi"), ALL),
    ("read-messages", lambda s, c: reading.read(s, ALPHA, c, Selection(), [], at_once), ALL),
    ("reply", lambda s, c: reading.reply(s, ALPHA, c, message_to(c.name), "hi", []), ALL),
    ("ack", lambda s, c: reading.handle(s, ALPHA, c, [message_to(c.name)]), ALL),
    ("announce", lambda s, c: presence.announce(s, ALPHA, c, "busy"), ALL),
    ("heartbeat", lambda s, c: claims.heartbeat(s, ALPHA, c), ALL),
    ("broadcast-message", lambda s, c: messages.broadcast(s, ALPHA, c, "hi"), "leader member human"),
    (
        "create-task",
        lambda s, c: tasks.create(s, ALPHA, c, Task(team_name=ALPHA, title="t", created_at="")),
        "leader task-manager human",
    ),
    ("claim-task", lambda s, c: claims.claim(s, ALPHA, c, "4"), "member task-manager"),
    ("claim-task --next", lambda s, c: claims.claim_next(s, ALPHA, c), "member task-manager"),
    ("update-task: title of any", update(task="1", title="x"), "leader task-manager human"),
    ("update-task: description of any", update(task="1", description="x"), "leader task-manager human"),
    ("update-task: priority of any", update(task="4", priority="high"), "leader task-manager human"),
    ("update-task: blockers of any", update(task="1", block=["4"]), "leader task-manager human"),
    ("update-task: title of bob's", update(task="2", title="x"), ALL),
    ("update-task: result of another's", update(task="1", result="x"), NONE),
    ("update-task: complete another's", update(task="1", status="completed"), NONE),
    ("update-task: fail another's", update(task="1", status="failed"), NONE),
    ("update-task: complete bob's", update(task="2", status="completed"), "member"),
    ("update-task: fail bob's", update(task="2", status="failed"), "member"),
    ("update-task: result of mia's", update(task="3", result="x"), "task-manager"),
    ("update-task: cancel any", update(task="4", status="cancelled"), "task-manager human"),
    ("update-task: reopen any", update(task="5", status="pending"), "task-manager human"),
    ("update-task: reopen bob's", update(task="6", status="pending"), "member task-manager human"),
    ("update-task: keep any for another", update(task="4", owner="cal"), "leader task-manager human"),
    ("update-task: hand over bob's", update(task="2", owner="cal", force=True), ALL),
    ("release-task: any", lambda s, c: claims.release(s, ALPHA, c, "1", force=True), "leader task-manager human"),
    ("release-task: bob's", lambda s, c: claims.release(s, ALPHA, c, "2", force=True), ALL),
    ("propose-plan", lambda s, c: plans.propose(s, ALPHA, c, "p"), "member task-manager"),
    ("approve-plan", lambda s, c: plans.approve(s, ALPHA, c, "1"), "leader human"),
    ("reject-plan", lambda s, c: plans.reject(s, ALPHA, c, "1", "no"), "leader human"),
    ("request-shutdown", lambda s, c: shutdowns.request(s, ALPHA, c, ["cal"]), "leader human"),
    ("approve-shutdown: bob's", lambda s, c: shutdowns.approve(s, ALPHA, c, "1"), "member"),
    ("approve-shutdown: mia's", lambda s, c: shutdowns.approve(s, ALPHA, c, "2"), "task-manager"),
    ("reject-shutdown: bob's", lambda s, c: shutdowns.reject(s, ALPHA, c, "1", "no"), "member"),
    ("close-team", lambda s, c: closing.close(s, ALPHA, c, force=True), "leader human"),
    ("restore-team", lambda s, c: closing.restore(s, ALPHA, c), "leader human"),
    ("hand-over", lambda s, c: joining.hand_over(s, ALPHA, c, "ida"), "leader human"),
    ("define-role", lambda s, c: role_definitions.define(s, ALPHA, c, "scout"), "leader human"),
    ("set", lambda s, c: settings.change(s, ALPHA, c, "staleAfterSeconds", "60"), "leader human"),
]


def test_the_table_of_roles() -> None:
    store = workplace()
    joining.join(store, ALPHA, Caller("ida"))
    before = everything(store)
    for role, name in NAMES.items():
        for what, do, may in TABLE:
            if role in may.split():
                do(copy_of(store), Caller(name))
                continue
            with pytest.raises(NotAllowed) as refusal:
                do(store, Caller(name))
            assert refusal.value.hint and everything(store) == before, (what, role)


def copy_of(store: FileStore) -> FileStore:
    copy = new_store()
    shutil.copytree(store.root, copy.root, dirs_exist_ok=True)
    return copy


def everything(store: FileStore) -> dict[str, object]:
    found = tree(Path(store.root)) or {}
    return {path: data for path, data in found.items() if path.endswith(".json")}


def test_the_environment_does_not_change_the_role_of_a_member(cli: Cli) -> None:
    add_tasks(cli, "t")
    for variable in ("TEAMS_AGENT_TYPE", "OPENCODE_AGENT_TYPE"):
        assert cli("create-task", "x", agent="bob", **{variable: "task-manager"}).status == 13
        assert cli("claim-task", "1", agent="lea", **{variable: "member"}).status == 13
        assert cli("join-team", agent="bob", **{variable: "task-manager"}).status == 11
    cli.ok("claim-task", "1", agent="bob")


def test_an_unknown_type_is_a_specialty(tmp_path: Path) -> None:
    """A type that is no role counts as a skill of the agent, which joins as a team-member."""
    cli = make_team(tmp_path / "root")
    add_tasks(cli, "t", require=["rust"])
    joined = json.loads(cli("join-team", "--json", agent="ron", TEAMS_AGENT_TYPE="rust").stdout)
    assert (joined["role"], joined["agentType"]) == ("team-member", "rust")
    assert cli("join-team", agent="pia").status == 0
    assert cli.refused("claim-task", "1", agent="pia") == (13, "not_allowed")
    assert cli.ok("claim-task", "--next", agent="ron")["id"] == "task-1"
    manager = cli("join-team", "--role", "task-manager", "--json", agent="max", TEAMS_AGENT_TYPE="go").json
    assert (manager["role"], manager["agentType"]) == ("task-manager", "go")


def test_a_role_of_the_team(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root")
    add_tasks(cli, "t", require=["audit"])
    words = "define-role auditor --extends member --allow create-task --deny send-message --skill audit"
    assert cli.ok(*words.split(), "--description", "looks twice", agent="lea")["description"] == "looks twice"
    cli.ok("join-team", "--role", "auditor", agent="ann")
    assert cli.ok("create-task", "x", agent="ann")["createdBy"] == "ann"
    assert cli.refused("send-message", "lea", "hi", agent="ann") == (13, "not_allowed")
    assert cli.ok("claim-task", "1", agent="ann")["owner"] == "ann"
    cli.ok("define-role", "senior", "--extends", "auditor", "--allow", "broadcast-message", agent="lea")
    assert cli("join-team", agent="sam", TEAMS_AGENT_TYPE="senior").status == 0
    assert cli.refused("send-message", "lea", "hi", agent="sam") == (13, "not_allowed")
    assert cli.ok("create-task", "y", agent="sam")["createdBy"] == "sam"
    assert cli.refused("define-role", "auditor", "--extends", "senior", agent="lea") == (2, "invalid_value")


def config(rules: dict[str, str], **agent: Any) -> Config:
    return Config(permission={"tool": {"claim-task": rules}}, agent=agent)


DECISIONS = [
    # the user's rules for claim-task, the team's definition of its role scout, the decision
    ({}, {}, "allow"),
    ({"team-member": "deny"}, {}, "deny"),
    ({"team-member": "ask"}, {}, "ask"),
    ({"*": "ask", "team-member": "allow"}, {}, "allow"),
    ({"*": "deny", "scout": "allow"}, {}, "allow"),
    ({"member": "allow", "team-member": "deny"}, {}, "deny"),
    ({}, {"deny": ["claim-task"], "allow": ["claim-task"]}, "deny"),
    ({"scout": "allow"}, {"deny": ["claim-task"]}, "deny"),
    ({"scout": "deny"}, {"allow": ["claim-task"]}, "deny"),
    ({"scout": "ask"}, {"allow": ["claim-task"]}, "ask"),
    ({"team-member": "deny"}, {"allow": ["claim-task"]}, "deny"),
    ({"*": "ask"}, {"allow": ["claim-task"]}, "ask"),
]


def test_deny_beats_ask_beats_allow() -> None:
    """The user's rule nearest to the role counts, or the team's if that is stricter."""
    for rules, scout, decision in DECISIONS:
        store = new_store()
        joining.spawn_team(store, ALPHA, Caller("lea"))
        role_definitions.define(store, ALPHA, Caller("lea"), "scout", **scout)  # type: ignore[arg-type]
        tasks.create(store, ALPHA, Caller("lea"), Task(team_name=ALPHA, title="t", created_at=""))
        joining.join(store, ALPHA, Caller("sid"), "scout")
        caller = Caller("sid", config=config(rules))
        if decision == "allow":
            assert claims.claim(store, ALPHA, caller, "1").owner == "sid"
        else:
            with pytest.raises(NeedsHuman if decision == "ask" else NotAllowed):
                claims.claim(store, ALPHA, caller, "1")


def test_a_role_that_extends_nothing_known_may_do_nothing() -> None:
    broken: dict[str, Any] = {"a": {"extends": "b"}, "b": {"extends": "a"}, "c": {"extends": "gone"}}
    for role in broken:
        assert roles.verdict(role, "send-message", None, Config(agent=broken)) == "deny"


def test_secure_teams_ask_for_the_token(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "root", team=ALPHA)
    made = cli.ok("spawn-team", ALPHA, "--secure", agent="lea")
    token = cli.ok("join-team", agent="bob")["token"]
    for secret in (made["token"], made["humanToken"], token):
        assert len(secret) > 30
        assert not any(secret in path.read_text() for path in cli.root.rglob("*") if path.is_file())
    assert cli.refused("send-message", "lea", "hi", agent="bob") == (13, "not_allowed")
    assert cli("send-message", "lea", "hi", agent="bob", TEAMS_TOKEN=made["token"]).status == 13
    assert cli("send-message", "lea", "hi", agent="human", TEAMS_TOKEN=token).status == 13
    assert cli("send-message", "lea", "hi", agent="bob", TEAMS_TOKEN=token).status == 0
    assert cli("send-message", "lea", "hi", agent="human", TEAMS_TOKEN=made["humanToken"]).status == 0
    assert cli("join-team", agent="bob").status == 13
    assert "oken" not in cli("show-team", "--json").stdout


def test_in_a_secure_team_nobody_comes_back_as_another(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "root", team=ALPHA)
    cli.ok("spawn-team", ALPHA, "--secure", agent="lea")
    token = cli.ok("join-team", agent="bob")["token"]
    assert cli("leave-team", agent="bob", TEAMS_TOKEN=token).status == 0
    assert cli.refused("join-team", agent="bob") == (13, "not_allowed")
    assert cli("join-team", agent="bob", TEAMS_TOKEN=token[::-1]).status == 13
    again = cli("join-team", "--json", agent="bob", TEAMS_TOKEN=token).json["token"]
    assert again != token
    assert cli("announce", "back", agent="bob", TEAMS_TOKEN=again).status == 0


SPECIALIST = {
    "extends": "team-member",
    "skill": ["team-coordination", "security-review"],
    "description": "Security-focused team member",
}


OTHERS = {"build": {"mode": "primary", "prompt": "You build."}}


def opencode(home: Path, text: str | dict[str, Any], name: str = "opencode.json") -> None:
    directory = home / ".config/opencode"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text if isinstance(text, str) else json.dumps(text))


def test_config_json_goes_before_the_file_of_opencode(no_real_home: Path, tmp_path: Path) -> None:
    """Rules and roles in OpenCode's file count otherwise, but its modes are no roles."""
    cli = make_team(tmp_path / "root", "bob")
    rules = {"send-message": {"*": "deny"}, "claim-task": "deny", "odd": 7}
    opencode(no_real_home, {"permission": {"edit": "allow", "tool": rules}, "agent": {"qa": SPECIALIST, **OTHERS}})
    assert cli.refused("send-message", "lea", "hi", agent="bob") == (13, "not_allowed")
    assert cli.refused("claim-task", "--next", agent="bob") == (13, "not_allowed")
    assert cli.refused("join-team", "--role", "build", agent="zoe") == (2, "invalid_value")
    assert cli.ok("join-team", "--role", "qa", agent="sue")["role"] == "qa"
    (cli.root / "config.json").write_text(
        json.dumps({"permission": {"tool": {"send-message": {"team-member": "allow"}}}})
    )
    assert cli.ok("send-message", "lea", "hi", agent="bob")["id"] == "msg-1"
    assert cli.refused("send-message", "bob", "hi", agent="lea") == (13, "not_allowed")
    cli.ok("set", "--user", "broadcast", "agents", agent="human")
    assert "claim-task" not in (cli.root / "config.json").read_text()


def test_rules_for_all_roles_and_for_all_tools(cli: Cli) -> None:
    """A rule for one tool goes before a rule for all; a refusal names the roles that are allowed."""
    rules: dict[str, Any]
    for rules, refused in (
        ({"claim-task": "deny"}, "claim-task --next"),
        ({"*": "deny", "claim-task": {"team-leader": "deny"}}, "claim-task --next"),
        ({"*": {"team-member": "deny"}, "claim-task": {"team-member": "allow"}}, "announce busy"),
        ({"get-tasks": "deny"}, "get-tasks"),
    ):
        (cli.root / "config.json").write_text(json.dumps({"permission": {"tool": rules}}))
        cli.ok("settings", agent="human")  # notes that the file is valid
        assert cli.refused(*refused.split(), agent="bob") == (13, "not_allowed")
    (cli.root / "config.json").write_text('{"permission": {"tool": {"send-message": {"team-member": "deny"}}}}')
    hint = cli("send-message", "lea", "hi", "--json", agent="bob").error["hint"]
    assert hint == "Allowed to: team-leader, task-manager, human."


def test_members_make_no_teams_whatever_they_say_of_themselves(cli: Cli) -> None:
    assert cli.refused("spawn-team", "second", agent="bob") == (13, "not_allowed")
    assert cli("spawn-team", "second", agent="bob", team="", TEAMS_AGENT_TYPE="leader").status == 13
    assert cli("spawn-team", "second", agent="lea", TEAMS_AGENT_TYPE="member").status == 13
    assert cli.ok("spawn-team", "second", agent="lea")["leader"] == "lea"
    cli.ok("join-team", "second", agent="bob", team="second")
    cli.ok("leave-team", agent="bob", team="second")
    cli.ok("leave-team", agent="bob")
    assert cli.ok("spawn-team", "third", agent="bob")["leader"] == "bob"


def test_an_agent_is_told_what_its_role_makes_of_it(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root")
    entry = {**SPECIALIST, "workflow": "code-review"}
    (cli.root / "config.json").write_text(json.dumps({"agent": {"security": entry}}))
    cli.ok("join-team", "--role", "security", agent="sue")
    about = "Your role: security: Security-focused team member. Your skills: security-review, team-coordination."
    about += " You follow the workflow code-review: teams list-workflows has its file."
    assert about in cli("whoami", agent="sue").stdout
    assert cli.ok("whoami", agent="sue")["skills"] == ["security-review", "team-coordination"]
    started = json.dumps({"hook_event_name": "SessionStart", "session_id": "s"}).encode()
    assert about in cli("hook", "claude", agent="sue", stdin=started).stdout
    assert about in cli("brief", agent="sue").stdout and about not in cli("brief", agent="sue").stdout


def test_doctor_names_rules_without_effect(no_real_home: Path, tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root")
    opencode(no_real_home, {"permission": {"tool": {"send-message": "denied", "announce": {"*": "deny"}}}})
    warning, refused = cli.ok("doctor")["findings"]
    assert warning["level"] == "warning" and warning["where"].endswith("opencode.json: permission.tool.send-message")
    assert refused["where"].endswith("opencode.json: permission.tool.announce")
    assert refused["remedy"] == f"Move it to {cli.root}/config.json."
    opencode(no_real_home, '{"permission": {"tool": ')
    (warning,) = cli.ok("doctor")["findings"]
    assert "it is not valid JSON" in warning["what"]


def test_defaults_that_are_set_at_once_are_all_kept(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root")
    given = {"checkTimeout": 100, "max_depth": 5, "ack_timeout": 50, "wakeAgainAfter": 99, "max_shadows": 3}
    processes = [cli.start("set", "--user", key, str(value), agent="human") for key, value in given.items()]
    for process in processes:
        _, err = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, err
    assert json.loads((cli.root / "config.json").read_text())["settings"] == given


@pytest.mark.parametrize(("name", "meanwhile", "code"), [("a", "b", InvalidValue), ("C", "c", AlreadyExists)])
def test_of_two_roles_defined_at_once_the_second_is_checked_again(
    name: str, meanwhile: str, code: type[TeamsError]
) -> None:
    """Otherwise both would extend each other and be lost, or differ only in case."""
    store = workplace()
    for role in "ab":
        role_definitions.define(store, ALPHA, Caller("lea"), role)

    class Overtaken(FileStore):
        def replace(self, *args: Any, **more: Any) -> Any:
            role_definitions.define(store, ALPHA, Caller("lea"), meanwhile, extends="a")
            return super().replace(*args, **more)

    with pytest.raises(code):
        role_definitions.define(Overtaken(store.root), ALPHA, Caller("lea"), name, extends="b")
    assert name == "a" or name not in store.get(ALPHA, TEAM, ALPHA)[0].roles


def test_the_user_may_define_a_built_in_role_by_its_short_name(cli: Cli) -> None:
    """As in rules for tools: `member` means `team-member`."""
    definition = {"extends": "member", "deny": ["send-message"], "skill": ["search"]}
    (cli.root / "config.json").write_text(json.dumps({"agent": {"member": definition}}))
    cli.ok("settings", agent="human")  # notes that the file is valid
    assert cli.refused("send-message", "lea", "hi", agent="bob") == (13, "not_allowed")
    cli.ok("create-task", "find", "--require", "search", agent="lea")
    assert cli.ok("claim-task", "--next", agent="bob")["id"] == "task-1"


def test_a_refused_member_is_sent_only_to_who_may_do_it_and_can_be_asked(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    cli.ok("define-role", "mute", "--deny", "send-message", agent="lea")
    cli.ok("join-team", "--role", "mute", agent="eve")

    def hint(agent: str, *words: str) -> str:
        return cli(*words, agent=agent).stderr.splitlines()[1].strip()

    assert hint("bob", "create-task", "one").endswith(" Ask the leader for it: teams send-message lea TEXT")
    assert hint("bob", "skip-question", "1") == "Allowed to: human. Ask for it: teams send-message human TEXT"
    assert hint("eve", "create-task", "one") == "Allowed to: team-leader, task-manager, human."
    assert hint("lea", "join-team", "--role", "team-member") == "Choose another name."
