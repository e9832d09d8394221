"""The agent that the server acts for: an agent that the environment names, or an agent that joined through the
server.
"""

from __future__ import annotations

import os
from contextlib import suppress

from teams_cli import environment, errors
from teams_cli.agents.seats import bindings, insiders
from teams_cli.agents.seats.bindings import Binding
from teams_cli.commands.call import Call
from teams_cli.questions import asking
from teams_cli.serving import requests
from teams_cli.serving.watching import Requester, Watchers
from teams_cli.teams import config, permission, roles
from teams_cli.teams.teams import MEMBER, Team


class Identity:
    """The agent that the server acts for, its team and its token. Each of these may be ""."""

    def __init__(self, base: Call) -> None:
        self._base = base
        self.watchers = Watchers(base.store)
        client = bindings.nearest_client(os.getppid())
        self._is_nested = bindings.parent_of(base.store.root, client, base.environ) is not None
        """Whether the client was started inside the client of a member. If so, the environment names that member, and
        the server has no agent until one joins.
        """
        if self._is_nested:
            base.caller = None
        caller = base.caller
        self.agent = caller.name if caller else ""
        self.token = caller.token if caller else ""
        self._team = base.given_team

    @property
    def team(self) -> str:
        """The team that the environment or a flag names, or else the only team that can be meant. It is "" if no team
        can be meant, or more than one.
        """
        return self._team or self._base.only_team()

    def call(
        self,
        requester: Requester,
        sender: requests.Sender | None = None,
        thread: str = "",
        agent_id: str = "",
        tool_use_id: str = "",
    ) -> Call:
        """Return the call for one request, under the user's present configuration. The call ends when the client of the
        *requester* leaves.

        One server may serve several agents. If *thread* belongs to an agent, the request comes from that agent;
        otherwise, from the server's own agent. If *agent_id* is the id of a subagent, or our hook noted *tool_use_id*
        for a subagent, the caller is that subagent. A *sender* may name the caller and the team.
        """
        base = self._base
        self._adopt_agent_of_terminal()
        thread_owner = bindings.of_thread(base.store.root, thread)  # an agent with its team and token
        parent = thread_owner or Binding(self.team, self.agent, self.token)
        subagent = insiders.caller(base.store.root, parent, agent_id, tool_use_id)
        binding = Binding(parent.team, *subagent) if subagent else thread_owner
        agent, token = (binding.agent, binding.token) if binding else (self.agent, self.token)
        team = default_team = binding.team if binding else self._team
        if sender:
            agent, team = sender.known_as(agent), sender.team or team
        call = requests.call_as(base, self.watchers, requester, agent, team, token, sender, default_team)
        if call.caller is not None and base.caller is not None and not binding:  # the environment describes this agent
            call.caller.display = call.caller.display or base.caller.display
            call.caller.type = call.caller.type or base.caller.type
        return call

    def _adopt_agent_of_terminal(self) -> None:
        """If the server has no agent yet, act for the agent in whose terminal it runs, if that agent has joined by now.
        A server that runs below a daemon knows no terminal, because several agents may share the daemon.
        """
        if self.agent or self._is_nested or bindings.is_below(os.getppid(), bindings.DAEMON):
            return
        terminal = bindings.of_nearest_client(self._base.store.root, os.getppid())
        if terminal and self._team in ("", terminal.team):
            self.adopt(terminal.agent, terminal.team, terminal.token, "terminal")

    def load_config(self) -> config.Config:
        """Return the user's present configuration.

        Raises:
            DamagedRecord: The configuration can't be read.
        """
        return config.load(self._base.store.root, self._base.environ)

    def adopt(self, agent: str, team: str, token: str, source: str) -> None:
        """Act from now on for this agent of the team. *source* says how the server knows the agent: `terminal` if it
        runs in the agent's terminal, `session` if the agent joined or created the team through it.
        """
        self.agent, self._team, self.token = agent, team, token or self.token
        self._base.sources = {**self._base.sources, "team": (team, source), "agent": (agent, source)}


class Rights:
    """The present rights of a caller, according to the team's records and the user's configuration.

    *will_join* is True for a client that asks for its tools only once, before its agent has joined. A caller without a
    name then has the rights of a member, so that the client gets the tools that its agent needs later.
    """

    def __init__(self, call: Call, will_join: bool = False) -> None:
        self.has_identity = call.caller is not None
        self.is_held = environment.holder(call.environ) is not None
        self._config = call.config
        self._team: Team | None = None
        with suppress(errors.TeamsError):  # the caller has no team yet
            self._team = call.load_team()
        standing = permission.standing_of(self._team, call.caller) if self._team else None
        self.role = standing.role if standing else None
        self.is_outside = self.role is None
        if will_join and not self.has_identity:
            self.role, self.has_identity = MEMBER, True

    @property
    def asks(self) -> str:
        """A sentence that says how readily agents should ask each other; "" if questions are off."""
        return asking.how_readily(self._team) if self._team else ""

    def may(self, operation: str) -> bool:
        """Return whether the caller may use the operation. This is also True if the person must agree first."""
        if self.role is None:
            return operation == "join-team" or (self.has_identity and operation == "spawn-team")
        try:
            return roles.verdict(self.role, operation, self._team, self._config) != "deny"
        except errors.TeamsError:  # the role is no longer defined
            return False
