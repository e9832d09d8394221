"""Merging, removing and pruning worktrees loses no work of an agent, and no file of the person's."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from teams_cli.agents import merging
from tests.support.agents import NEEDS_PROC
from tests.support.cli import ALPHA, COMMAND, TIMEOUT, Cli, make_team
from tests.support.shop import git, teams_in
from tests.support.workflow_runs import make_repository

pytestmark = NEEDS_PROC

COMMAND_LINE = shlex.join(COMMAND)


@pytest.fixture
def main(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "main", {"a": "a", "b": "b"})


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    who = {f"GIT_{who}_{what}": "n@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    made = make_team(tmp_path / "root", "mia")
    made.more.update(who)
    made.agent = "lea"
    return made


def made_by(cli: Cli, name: str, main: Path, script: str) -> Path:
    words = ("run-agent", script, "--agent-id", name, "--worktree", "--cwd", str(main))
    assert cli(*words).status == 0
    return cli.root / "worktrees" / ALPHA / name


@pytest.mark.slow
def test_what_is_removed_comes_back_as_it_was(cli: Cli, main: Path) -> None:
    """Uncommitted files and nested repositories can be restored, until `prune` deletes them."""
    script = "echo 1 >a; git add a; echo 2 >a; rm b; echo 3 >'new file'; git init -q in; cd in; echo x >x; git add x"
    tree = made_by(cli, "ann", main, f"{script}; git commit -qm x")
    before = git(tree, "status", "--porcelain")
    assert cli.refused("worktree", "remove", "ann") == (11, "conflict")
    ref = cli.ok("worktree", "remove", "ann", "--force")["kept"]
    assert not tree.exists() and [one["ref"] for one in cli.ok("worktree", "list", "--kept")] == [ref]
    assert cli.ok("worktree", "restore", ref)["path"] == str(tree)
    assert git(tree, "status", "--porcelain") == before and (tree / "a").read_text() == "2\n"
    assert git(tree, "show", ":a") == "1" and git(tree / "in", "log", "--format=%s") == "x"
    assert cli.ok("prune", "--yes") == []
    cli.ok("set", "worktree.keptFor", "0")
    assert cli.ok("prune", "--yes")[0]["ref"] == ref and cli.ok("worktree", "list", "--kept") == []


def test_staged_files_that_a_rule_ignores_come_back(cli: Cli, main: Path) -> None:
    (main / ".gitignore").write_text("*.log\n")
    git(main, "add", ".gitignore")
    git(main, "commit", "-qm", "rule")
    stage = "echo 1 >one.log; git add -f one.log; echo 2 >one.log; echo 3 >two.log; git add -fN two.log; echo 4 >three"
    tree = made_by(cli, "ann", main, f"{stage}; git add -N three")
    before = git(tree, "status", "--porcelain")
    assert before == "AM one.log\n A three\n A two.log"
    ref = cli.ok("worktree", "remove", "ann", "--force")["kept"]
    assert cli.ok("worktree", "restore", ref)["path"] == str(tree)
    assert git(tree, "status", "--porcelain") == before and git(tree, "show", ":one.log") == "1"
    assert [(tree / name).read_text() for name in ("one.log", "two.log", "three")] == ["2\n", "3\n", "4\n"]


@pytest.mark.parametrize("strange", ["\u2028", "\x85", "\u3000"])
def test_work_on_a_branch_with_a_strange_name_comes_back(cli: Cli, main: Path, strange: str) -> None:
    """Git allows characters in it at which Python divides lines and words."""
    branch = f"a{strange}b"
    inner = "git init -q in; cd in; git config user.name n; git config user.email e@example.org"
    inner = f"{inner}; touch x; git add x; git commit -qm x"
    inner = f"{inner}; git switch -qc '{branch}'; git tag '{branch}'"
    tree = made_by(cli, "ann", main, f"({inner}); git branch '{branch}'")
    assert [row["agent"] for row in cli.ok("worktree", "list")] == ["ann"]
    ref = cli.ok("worktree", "remove", "ann", "--force")["kept"]
    assert cli.ok("worktree", "restore", ref)["path"] == str(tree)
    assert git(tree / "in", "symbolic-ref", "HEAD") == f"refs/heads/{branch}"
    assert git(tree / "in", "tag") == branch


def test_annotated_tags_of_a_nested_repository_come_back(cli: Cli, main: Path) -> None:
    """With their texts, and also those of other tags."""
    identity = "git config user.name n; git config user.email e@example.org"
    tags = "printf 'why\\n\\njos\\351' | git tag -aF - one; git tag -am two two one; git tag three"
    tree = made_by(cli, "ann", main, f"git init -q in; cd in; {identity}; touch x; git add x; git commit -qm x; {tags}")
    words = ("for-each-ref", "--format=%(refname) %(objecttype) %(objectname)", "refs/tags")
    before = git(tree / "in", *words)
    assert [line.split()[1] for line in before.splitlines()] == ["tag", "commit", "tag"]
    ref = cli.ok("worktree", "remove", "ann", "--force")["kept"]
    cli.ok("worktree", "restore", ref)
    assert git(tree / "in", *words) == before
    assert git(tree / "in", "cat-file", "-t", "two^{commit}") == "commit"


def test_kept_work_that_git_can_t_remove_stops_no_other_removal(cli: Cli, main: Path) -> None:
    refs = []
    for name in ("ann", "ben"):
        made_by(cli, name, main, "echo 1 >a")
        refs.append(cli.ok("worktree", "remove", name, "--force")["kept"])
    (main / ".git" / f"{refs[0]}.lock").touch()
    cli.ok("set", "worktree.keptFor", "0")
    stuck, removed = cli.ok("prune", "--yes")
    assert (stuck["ref"], stuck["removed"]) == (refs[0], False) and "cannot lock" in stuck["kept"]
    assert (removed["ref"], removed["removed"]) == (refs[1], True)


def test_a_worktree_whose_folder_was_deleted_is_merged_removed_and_resumed(cli: Cli, main: Path) -> None:
    committing = "cat >$TEAMS_AGENT_ID; git add .; git commit -qm $TEAMS_AGENT_ID"
    trees = {name: made_by(cli, name, main, committing) for name in ("ann", "bob")}
    shutil.rmtree(trees["ann"])
    assert cli.refused("worktree", "remove", "ann") == (11, "conflict") and not trees["ann"].exists()
    (hint,) = cli.ok("worktree", "list")[0]["holds"]
    subprocess.run(["sh", "-c", hint.partition("get it back: ")[2]], check=True, capture_output=True)
    assert cli.ok("worktree", "list")[0]["holds"] == ["1 commit"]
    shutil.rmtree(trees["ann"])
    assert cli.ok("worktree", "merge", "ann")["state"] == "merged" and (main / "ann").exists()
    shutil.rmtree(trees["bob"])
    cli.ok("send-message", "bob", "once more")
    cli.ok("wait", "--agent", "bob", "--timeout", str(TIMEOUT))
    assert git(trees["bob"], "log", "--format=%s", "main..").split() == ["bob", "bob"]
    shutil.rmtree(trees["bob"])
    git(main, "merge", "-q", f"teams/{ALPHA}/bob")
    assert cli("worktree", "diff", "bob").stdout == "bob changed nothing\n"
    cli.ok("worktree", "remove", "bob")
    assert git(main, "branch", "--format=%(refname:short)") == "main" and not trees["bob"].exists()
    ref = cli.ok("worktree", "list", "--kept")[0]["ref"]
    shutil.rmtree(cli.ok("worktree", "restore", ref)["path"])
    git(main, "update-ref", "-d", f"refs/heads/teams/{ALPHA}/ann")
    assert cli.ok("worktree", "restore", ref)["path"] == str(trees["ann"])


@pytest.mark.slow
def test_a_message_to_an_agent_whose_work_was_merged_resumes_it_in_a_new_worktree(cli: Cli, main: Path) -> None:
    tree = made_by(cli, "ann", main, "cat >>notes; git add notes; git commit -qm notes")
    cli.ok("worktree", "merge", "ann")
    assert not tree.exists()
    cli.ok("send-message", "ann", "once more")
    cli.ok("wait", "--agent", "ann", "--timeout", str(TIMEOUT))
    assert "once more" in git(tree, "show", "HEAD:notes") and (main / "notes").exists()
    assert cli.ok("worktree", "merge", "ann")["state"] == "merged"
    assert "once more" in (main / "notes").read_text()


@pytest.mark.parametrize(
    "script",
    [
        "git update-index --assume-unchanged a; echo 1 >a",
        "echo 1 >a; git stash -q",
        "git checkout -q --detach; echo 1 >a; git commit -qam one",
    ],
)
def test_work_that_git_does_not_show_is_work(cli: Cli, main: Path, script: str) -> None:
    tree = made_by(cli, "ann", main, script)
    assert cli.ok("worktree", "list")[0]["state"] != "empty"
    assert cli.refused("worktree", "remove", "ann") == (11, "conflict") and tree.exists()


@pytest.mark.slow
def test_what_refuses_a_merge_leaves_everything_as_it_was(cli: Cli, main: Path) -> None:
    tree = made_by(cli, "ann", main, "echo 1 >a; echo 2 >b; git add b; echo 3 >c")
    hooks = main / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    config = (main / ".git/config").read_text()
    cases = [
        (hooks / "pre-commit", "#!/bin/sh\necho tidied >a; git add a; echo no secrets >&2; exit 1\n", "no secrets"),
        (hooks / "commit-msg", "#!/bin/sh\necho no secrets >&2; exit 1\n", "no secrets"),
        (hooks / "pre-merge-commit", "#!/bin/sh\necho no secrets >&2; exit 1\n", "no secrets"),
        (hooks / "pre-commit", "#!/bin/sh\nexit 1\n", "hook of the repository"),
        (hooks / "pre-merge-commit", "#!/bin/sh\nexit 1\n", "hook of the repository"),
        (main / ".git/refs/heads/main.lock", "", ""),
        (main / ".git/config", f"{config}[commit]\ngpgSign=true\n[gpg]\nprogram=false\n", ""),
    ]

    def state() -> list[object]:
        read = [git(place, *words) for place in (main, tree) for words in (["status", "--porcelain"], ["for-each-ref"])]
        return [*read, {name: (tree / name).read_text() for name in "abc"}]

    before = state()
    for path, content, said in cases:
        old = path.read_text() if path.exists() else None
        path.write_text(content)
        path.chmod(0o755)
        answer = cli("worktree", "merge", "ann")
        assert answer.status == 11 and said in answer.stderr, path
        assert state() == before, path
        path.write_text(old) if old is not None else path.unlink()
    assert cli.ok("worktree", "merge", "ann")["state"] == "merged" and (main / "b").read_text() == "2\n"


@pytest.mark.parametrize("way", ["worktree merge", "land", "git merge"])
def test_a_commit_of_a_submodule_comes_with_the_commit_that_refers_to_it(
    cli: Cli, main: Path, tmp_path: Path, way: str
) -> None:
    library = make_repository(tmp_path / "library", {"l": "l"})
    cloning = ("-c", "protocol.file.allow=always", "submodule", "--quiet")
    git(main, *cloning, "add", str(library), "lib")
    git(main, "commit", "-qm", "with a submodule")
    cli.ok("create-task", "t")
    change = "cd lib; echo new >l; git commit -qam new; cd ..; git commit -qam bump; "
    land = f"{COMMAND_LINE} claim-task 1; {COMMAND_LINE} land 1; {COMMAND_LINE} wait --landing 1; "
    done = f"{COMMAND_LINE} update-task 1 --status completed"
    script = f"git {' '.join(cloning)} update --init; {change}"
    made_by(cli, "ann", main, script + (land + done if way == "land" else ""))
    if way == "git merge":
        git(main, "merge", "-q", f"teams/{ALPHA}/ann")
    if way == "land":
        assert cli.ok("get-landings")[-1]["state"] == "landed"
    else:
        assert cli.ok("worktree", "merge", "ann")["state"] == "merged"
    git(main, *cloning, "update", "--no-fetch")
    assert (main / "lib/l").read_text() == "new\n"


@pytest.mark.parametrize("way", ["checked out twice", "rebased"])
def test_a_branch_that_a_checkout_would_not_follow_is_not_moved(cli: Cli, main: Path, tmp_path: Path, way: str) -> None:
    made_by(cli, "ann", main, "echo 1 >new")
    second = tmp_path / "second"
    git(main, "worktree", "add", "-q", "-f", str(second), "main")
    if way == "rebased":
        git(second, "-c", "sequence.editor=echo break >", "rebase", "-q", "-i", "--root")
        assert "detached" in git(second, "worktree", "list")
    before = git(main, "rev-parse", "main")
    answer = cli("worktree", "merge", "ann")
    assert answer.status == 11 and str(second) in answer.stderr
    assert git(main, "rev-parse", "main") == before and not (main / "new").exists()


def test_a_worktree_in_use_is_not_removed_and_one_without_work_is_by_a_merge(cli: Cli, main: Path) -> None:
    tree = made_by(cli, "ann", main, "true")
    with subprocess.Popen(["sleep", "60"], cwd=tree) as shell:
        answer = cli("worktree", "remove", "ann", "--force")
        shell.kill()
    assert answer.status == 11 and f"process {shell.pid}" in answer.stderr
    assert "a process: kill NUMBER" in answer.stderr
    answer = cli("worktree", "merge", "ann")
    assert answer.status == 0 and "nothing to merge into main; removed" in answer.stdout and not tree.exists()


def test_pruning_stops_at_what_it_does_not_know_and_goes_on(cli: Cli, main: Path) -> None:
    tree = made_by(cli, "ann", main, "echo 1 >a")
    Path(cli.root, "teams", ALPHA, "sessions/ann.json").write_text("{")
    cli("close-team", "--force")
    cli.ok("spawn-team", "beta", agent="human")
    cli.ok("close-team", "--team", "beta", agent="human")
    rows = {row["team"]: row for row in cli.ok("prune", "--older-than", "0", "--yes", agent="human")}
    assert str(tree) in rows[ALPHA]["kept"] and rows["beta"]["removed"] and (tree / "a").exists()


def test_a_repository_without_a_commit_hinders_no_comparison(cli: Cli, main: Path) -> None:
    full = "git init -q full; git -C full commit -q --allow-empty -m a"
    made_by(cli, "ann", main, f"git init -q nest; echo 1 >nest/a; {full}; echo 1 >new")
    diff = cli.ok("diff", "ann")["diff"]
    assert "+++ b/new" in diff and "b/full" in diff and "nest" not in diff
    assert "ann" not in cli("overlaps").stdout
    assert "b/nest/a" in cli("worktree", "diff", "ann").stdout


@pytest.mark.slow
def test_git_runs_no_command_that_an_agent_wrote_into_its_files(cli: Cli, main: Path, tmp_path: Path) -> None:
    """The configuration of a nested repository is not obeyed, even if the worktree's `.git` leads there."""
    ran = tmp_path / "ran"
    filtering = f"git config filter.x.clean 'touch {ran}; cat'; git config core.fsmonitor 'touch {ran}'"
    nested = "git init -q in; cd in; echo 1 >a; git add a; git commit -qm a"
    tree = made_by(cli, "ann", main, f"{nested}; {filtering}; echo '* filter=x' >.gitattributes; rm a")
    (tree / "in/a").write_text("changed")
    ran.unlink(missing_ok=True)
    assert "2 uncommitted files in in" in cli("worktree", "list").stdout
    assert "+changed" in cli("worktree", "diff", "ann").stdout
    link = (tree / ".git").read_text()
    (tree / ".git").write_text(f"gitdir: {tree}/in/.git\n")
    assert cli.ok("worktree", "list")[0]["state"] == "unknown"
    (tree / ".git").write_text(link)
    ref = cli.ok("worktree", "remove", "ann", "--force")["kept"]
    assert not ran.exists()
    cli.ok("worktree", "restore", ref)
    assert (tree / "in/a").read_text() == "changed"


def test_nothing_is_merged_where_a_worktree_was_made_to_lead_to_another(cli: Cli, main: Path) -> None:
    trees = [made_by(cli, name, main, f"echo {name} >{name}") for name in ("ann", "bob")]
    (trees[0] / ".git").write_text((trees[1] / ".git").read_text())
    assert cli.refused("worktree", "merge", "ann") == (11, "conflict")
    assert git(trees[1], "log", "--format=%s") == "work" and git(trees[1], "status", "--porcelain") == "?? bob"


def test_an_update_of_files_overwrites_no_untracked_link_or_directory(main: Path) -> None:
    """A link is compared by its target. What a killed update has left behind is overwritten."""
    base = git(main, "rev-parse", "HEAD")
    (main / "new").symlink_to("a")
    git(main, "add", "new")
    git(main, "commit", "-qm", "new")
    tip = git(main, "rev-parse", "HEAD")
    for target, is_overwritten in (("nowhere", False), ("b", False), ("a", True)):
        git(main, "reset", "-q", "--hard", base)
        git(main, "update-ref", "HEAD", tip)
        (main / "new").symlink_to(target)
        assert merging.follow(str(main), base, tip) is is_overwritten
        assert (main / "new").readlink() == Path(target)
        (main / "new").unlink()
    git(main, "reset", "-q", "--hard", base)
    git(main, "update-ref", "HEAD", tip)
    nested = make_repository(main / "new", {"kept": "kept"})
    assert not merging.follow(str(main), base, tip)
    assert (nested / "kept").read_text() == "kept"


def test_a_tag_with_the_name_of_the_branch_hinders_no_merge(cli: Cli, main: Path) -> None:
    made_by(cli, "ann", main, "echo 1 >new")
    git(main, "tag", "main")
    assert cli.ok("worktree", "merge", "ann")["onto"] == "main" and (main / "new").exists()


def test_a_merge_stops_if_the_branch_is_switched_meanwhile(cli: Cli, main: Path) -> None:
    """The checkout would otherwise get the files of a branch that it no longer has."""
    tree = made_by(cli, "ann", main, "echo 1 >new; git add new; git commit -qm new")
    git(main, "branch", "other")
    before = git(main, "rev-parse", "main")
    hook = main / ".git/hooks/commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nunset $(git rev-parse --local-env-vars)\ngit -C {main} switch -q other\n")
    hook.chmod(0o755)
    assert cli.refused("worktree", "merge", "ann") == (11, "conflict") and tree.exists()
    assert git(main, "status", "--porcelain") == "" and git(main, "rev-parse", "main") == before


def test_work_outside_a_sparse_checkout_comes_back(cli: Cli, main: Path) -> None:
    """What the sparse checkout leaves out is neither lost nor shown as deleted."""
    for name in ("in/f", "out/f", "out/g", "out/h"):
        path = main / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("1\n")
    git(main, "add", ".")
    git(main, "commit", "-qm", "directories")
    git(main, "sparse-checkout", "set", "in")
    tree = made_by(cli, "ann", main, "mkdir out; echo 2 >out/f; echo 2 >out/new; echo 2 >out/h; git add --sparse out/h")
    before = git(tree, "status", "--porcelain")
    ref = cli.ok("worktree", "remove", "ann", "--force")["kept"]
    cli.ok("worktree", "restore", ref)
    assert git(tree, "status", "--porcelain") == before and before
    assert cli.ok("worktree", "merge", "ann")["state"] == "merged"
    contents = {name: git(main, "show", f"main:out/{name}") for name in ("f", "g", "h", "new")}
    assert contents == {"f": "2", "g": "1", "h": "2", "new": "2"}


@pytest.mark.parametrize(
    "script", ["git checkout -q --detach; echo 1 >new; git add new; git commit -qm one", "echo 1 >new; git add new"]
)
def test_what_git_still_has_of_a_deleted_worktree_is_work(cli: Cli, main: Path, script: str) -> None:
    """A detached HEAD and staged files are lost with git's data of the worktree, not with its directory."""
    tree = made_by(cli, "ann", main, script)
    shutil.rmtree(tree)
    assert cli.refused("worktree", "remove", "ann") == (11, "conflict")
    (hint,) = cli.ok("worktree", "list")[0]["holds"]
    subprocess.run(["sh", "-c", hint.partition("get it back: ")[2]], check=True, capture_output=True)
    assert (tree / "new").exists() and cli.ok("worktree", "list")[0]["state"] == "work"
    shutil.rmtree(tree)
    ref = cli.ok("worktree", "remove", "ann", "--force")["kept"]
    assert git(main, "show", f"{ref}:new") == "1" and not tree.exists()


@pytest.mark.slow
def test_a_reference_names_one_kept_work_on_this_machine(cli: Cli, main: Path, tmp_path: Path) -> None:
    """The same agent of a new team of the same name may have worked in another repository."""
    other = make_repository(tmp_path / "other", {"o": "o"})
    references = []
    for repository in (main, other):
        made_by(cli, "ann", repository, f"echo 1 >in-{repository.name}")
        references.append(cli.ok("worktree", "remove", "ann", "--force")["kept"])
        cli("close-team", "--force")
        assert cli.ok("prune", "--older-than", "0", "--yes", agent="human")[0]["removed"]
        cli.ok("spawn-team", ALPHA, agent="lea")
    for repository, reference in zip((main, other), references, strict=True):
        tree = Path(cli.ok("worktree", "restore", reference)["path"])
        assert (tree / f"in-{repository.name}").exists()
    git(other, "update-ref", references[0], references[1])  # as an older version did
    answer = cli("worktree", "restore", references[0])
    assert answer.status == 2 and f"cd {other}/.git" in answer.stderr
    assert teams_in(other / ".git", cli, "lea", "worktree", "restore", references[0]).returncode == 0


@pytest.mark.slow
def test_a_merge_that_others_built_on_is_not_called_refused(cli: Cli, main: Path) -> None:
    """If its files could not be written, repeating the command writes them."""
    tree = made_by(cli, "ann", main, "echo 1 >new; git add new; git commit -qm new")
    hook = main / ".git/hooks/reference-transaction"  # commits on top of the merge, and locks the index
    hook.parent.mkdir(exist_ok=True)
    commit = "c=$(git commit-tree -p main -m more 'main^{tree}'); git update-ref refs/heads/main $c"
    hook.write_text(
        f"#!/bin/sh\nunset $(git rev-parse --local-env-vars); cd {main}\n"
        'test "$1" = committed && grep -q refs/heads/main && test ! -e .git/once || exit 0\n'
        f"touch .git/once .git/index.lock\n{commit}\n"
    )
    hook.chmod(0o755)
    for _ in range(2):
        answer = cli("worktree", "merge", "ann")
        assert answer.status == 11 and "was merged into main, but the files" in answer.stderr
        assert "index.lock" in answer.stderr and tree.exists() and not (main / "new").exists()
    (main / ".git/index.lock").unlink()
    assert cli("worktree", "merge", "ann").status == 0
    assert git(main, "status", "--porcelain") == "" and (main / "new").exists() and not tree.exists()


@pytest.mark.slow
def test_no_turn_begins_in_a_worktree_whose_set_up_failed(cli: Cli, main: Path) -> None:
    """The set-up is repeated for the next message."""
    tree = made_by(cli, "ann", main, "cat >>notes; git add notes; git commit -qm notes")
    cli.ok("worktree", "merge", "ann")
    cli.ok("set", "worktree.setup", "false")
    for _ in range(2):
        cli.ok("send-message", "ann", "once more")
        told = cli("wait", "--agent", "ann", "--timeout", str(TIMEOUT)).stdout
        assert "worktree.setup failed" in told and "no turn was begun" in told
    assert "once more" not in (tree / "notes").read_text()
    cli.ok("set", "worktree.setup", "touch a.out")
    cli.ok("send-message", "ann", "and again")
    cli.ok("wait", "--agent", "ann", "--timeout", str(TIMEOUT))
    assert "and again" in (tree / "notes").read_text() and (tree / "a.out").exists()


@pytest.mark.parametrize("is_deleted", [False, True])
def test_work_that_somebody_only_looks_at_is_not_merged(cli: Cli, main: Path, is_deleted: bool) -> None:
    """The main checkout is detached at the agent's commit, for a review."""
    tree = made_by(cli, "ann", main, "echo 1 >new; git add new; git commit -qm new")
    git(main, "checkout", "-q", "--detach", f"teams/{ALPHA}/ann")
    if is_deleted:
        shutil.rmtree(tree)
    else:
        assert "+++ b/new" in cli("worktree", "diff", "ann").stdout
    assert cli.ok("worktree", "list")[0]["state"] != "empty"
    assert cli.refused("worktree", "remove", "ann") == (11, "conflict")
    assert "has no branch checked out" in cli("worktree", "merge", "ann").stderr
    ref = cli.ok("worktree", "remove", "ann", "--force")["kept"]
    git(main, "switch", "-q", "main")
    assert git(main, "show", f"{ref}:new") == "1" and not (main / "new").exists()
