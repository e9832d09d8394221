// teams: hooks for OpenCode. Installed by `teams install opencode`; `teams uninstall opencode` takes it out.
// Mail is added to the result of a tool; an answer that would end the turn too early is followed by the reason.
import { spawnSync } from "node:child_process"

const command = "teams hook claude"

function ask(event, sessionID, more = {}) {
  const input = JSON.stringify({ hook_event_name: event, session_id: sessionID, ...more })
  const done = spawnSync("sh", ["-c", command], { input, encoding: "utf8", timeout: 30000 })
  if (done.status !== 0 || !done.stdout) return {}
  try {
    return JSON.parse(done.stdout)
  } catch {
    return {}
  }
}

export const teams = async ({ client }) => {
  if (!process.env.TEAMS_AGENT_ID && !process.env.OPENCODE_AGENT_ID) return {}
  const started = new Set()
  const refused = new Set()
  const children = new Set()
  return {
    event: async ({ event }) => {
      const session = event.properties?.info
      if (event.type === "session.created" && session?.parentID) children.add(session.id)
    },
    "tool.execute.after": async (input, output) => {
      if (children.has(input.sessionID)) return
      const first = !started.has(input.sessionID)
      started.add(input.sessionID)
      const said = ask(first ? "SessionStart" : "PostToolUse", input.sessionID)
      const text = said.hookSpecificOutput?.additionalContext
      if (text) output.output = `${output.output}\n\n${text}`
    },
    "experimental.text.complete": async (input) => {
      if (children.has(input.sessionID)) return
      const reason = ask("Stop", input.sessionID, { stop_hook_active: refused.delete(input.sessionID) }).reason
      if (!reason) return
      refused.add(input.sessionID)
      const parts = [{ type: "text", text: reason }]
      await client.session.promptAsync({ path: { id: input.sessionID }, body: { parts } })
    },
  }
}
