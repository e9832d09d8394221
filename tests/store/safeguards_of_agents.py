"""The safeguards of starting, keeping, landing and reporting the work of agents, and of clients; see `safeguards`."""

from __future__ import annotations

from tests.store.safeguards import AGENTS, INBOXES, INSTALL, LOGIN_CHECKS, LOGS, REVIEWS, STARTED, WORKFLOWS, Mutant

NOTICES = "tests/messages/test_notices.py"
MUTANTS = [
    Mutant(
        "landed from where a login says",
        "../extensions/landing/queueing",
        "*trust.trusted_places(store, team, recorded, directory)",
        "*recorded",
        LOGIN_CHECKS,
    ),
    Mutant(
        "aliases without bound",
        "../workflows/files",
        "        _size(node, {})\n",
        "        pass\n",
        f"{WORKFLOWS}::test_a_short_file_that_stands_for_millions_of_values_is_refused",
    ),
    Mutant("orphans not adopted", "../agents/keeper", "    processes.adopt_orphans(alone=True)\n", "", AGENTS),
    Mutant(
        "frozen keepers not told of",
        "../agents/ending",
        "return pid if processes.is_stopped(pid) else None",
        "return None",
        f"{AGENTS}::test_a_keeper_that_stands_still_is_named_and_can_be_ended",
    ),
    Mutant(
        "keepers on their way lost",
        "../agents/ending",
        'not processes.is_on_its_way("teams_cli.agents.keeper", variables)',
        "True",
        AGENTS,
    ),
    Mutant(
        "begun again told once for ever",
        "../agents/interrupting",
        "{BEGIN_AGAIN}-{session.generation}-{session.turns}",
        "{BEGIN_AGAIN}",
        "tests/agents/test_interrupting.py",
    ),
    Mutant(
        "landings of a login anywhere",
        "../extensions/landing/lander",
        "trust.refuse_untrusted(store, team_name, landing)\n                queueing",
        "pass\n                queueing",
        LOGIN_CHECKS,
    ),
    Mutant(
        "pull requests that a login names",
        "../extensions/landing/lander",
        "if not pull_requests.is_of(landing, environ):",
        "if False:",
        LOGIN_CHECKS,
    ),
    Mutant(
        "options and branches for commits",
        "../agents/merging",
        "return len(commit) in _LENGTHS and _HEX.issuperset(commit)",
        "return True",
        LOGIN_CHECKS,
    ),
    Mutant(
        "resumed as the record of a login says",
        "../agents/sessions",
        "return digest == _digest(session) and session.session_id in ids",
        "return True",
        STARTED,
    ),
    Mutant(
        "options for ids of sessions",
        "../agents/sessions",
        "return bool(text) and text[0] in _FIRST and _ID",
        "return bool(text) and _ID",
        STARTED,
    ),
    Mutant(
        "the user's settings of clients taken away",
        "../clients/profiles",
        "environments.clean(inherited, self.strip, self.keep)",
        "environments.clean(inherited)",
        "tests/runs/test_workflow_agents.py::test_agents_inherit_the_same_from_a_run_as_from_a_person",
    ),
    Mutant(
        "texts of TOML written as those of JSON",
        "../clients/toml_settings",
        "    return tomlkit.dumps(document)\n",
        '    return tomlkit.dumps(document).replace("\\U0001f600", "\\\\ud83d\\\\ude00")\n',
        "tests/clients/test_install_server.py::test_a_path_with_any_character_is_written_and_found_again",
    ),
    Mutant("mail of a killed turn lost", "../agents/sessions", "if session.given:", "if False:", AGENTS),
    Mutant("launchers not looked for", "../agents/starting", "if member.launcher is None:", "if True:", AGENTS),
    Mutant(
        "links in circles followed", "../clients/installation", "if os.path.islink(existing):", "if False:", INSTALL
    ),
    Mutant("logs without bound", "../agents/logs", "if turn < turns and (room", "if False and (room", LOGS),
    Mutant("landed as it is, not as reviewed", "../extensions/landing/queueing", "return submitted", "pass", REVIEWS),
    Mutant(
        "what another stored taken for durable",
        "files/engine",
        "        is_synced = lasting or self._durable != (path, revision)\n",
        "        is_synced = lasting\n",
        NOTICES,
    ),
    Mutant(
        "marks made anew by what may be taken back",
        "files/engine",
        "                    disk.confirm(directory, directory)\n",
        "                    pass\n",
        NOTICES,
    ),
    Mutant("a notice of what may be taken back", "../messages/notices", "        store.confirm(", "        (", NOTICES),
    Mutant(
        "two told of one task",
        "../views/concerns",
        "            if facts.must_give_up(offer):\n",
        "            if False:\n",
        "tests/views/test_turns.py",
    ),
    Mutant(
        "what came since marked as read unseen",
        "../messages/inboxes",
        "mailbox is not None and mailbox.before == inbox",
        "mailbox is not None",
        INBOXES,
    ),
]
