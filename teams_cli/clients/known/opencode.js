// teams: hooks for OpenCode. Installed by `teams install opencode`; `teams uninstall opencode` takes it out.
// Mail is added to the result of a tool and to what the person says; an answer that would end the turn too early is
// followed by the reason. At the end of each request to the model stands, for that request alone, who is there and what
// is not handled yet. In a terminal a process of ours waits beside the client, and its end wakes the session.
import { spawn, spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"

const command = "teams hook opencode"
const WAKES = 2
const INTERRUPTS = 3
const AGAIN_AFTER_KILL = 1000

function ask(event, sessionID, more = {}) {
  const input = JSON.stringify({ hook_event_name: event, session_id: sessionID, attends: true, ...more })
  const done = spawnSync("sh", ["-c", command], { input, encoding: "utf8", timeout: 30000 })
  if (done.status !== 0 || !done.stdout) return {}
  try {
    return JSON.parse(done.stdout)
  } catch {
    return {}
  }
}

const contextIn = (said) => said.hookSpecificOutput?.additionalContext

// What the client is doing, told without waiting for the answer, one after the other.
let telling = Promise.resolve()
function tell(event, sessionID, more = {}) {
  const input = JSON.stringify({ hook_event_name: event, session_id: sessionID, ...more })
  telling = telling.then(
    () =>
      new Promise((done) => {
        const told = spawn("sh", ["-c", command], { stdio: ["pipe", "ignore", "ignore"] })
        told.on("close", done).on("error", done)
        told.stdin.on("error", () => {})
        told.stdin.end(input)
      }),
  )
}

// Who is there and what is not handled yet, as the result of a tool; asked without holding up the client.
function attention(sessionID, more) {
  const input = JSON.stringify({ hook_event_name: "ModelCall", session_id: sessionID, ...more })
  return new Promise((done) => {
    const asked = spawn("sh", ["-c", command], { stdio: ["pipe", "pipe", "ignore"], timeout: 10000 })
    let said = ""
    asked.stdout.on("data", (data) => (said += data))
    asked.stdin.on("error", () => {})
    asked.stdin.end(input)
    asked.on("error", () => done(null))
    asked.on("close", () => {
      try {
        done(JSON.parse(said))
      } catch {
        done(null)
      }
    })
  })
}

// The last message with that at its end: beside the calls that an answer made, since some models take no call of theirs
// that they did not think about; else as text after what was said to them.
function attentive({ info, parts }, { tool, state }) {
  const place = { id: `${parts.at(-1)?.id ?? info.id}zz`, sessionID: info.sessionID, messageID: info.id }
  const output = JSON.stringify(state.output)
  const text = { ...place, type: "text", synthetic: true, text: `[${tool}] ${state.title}\n${output}` }
  const time = { start: Date.now(), end: Date.now() }
  const done = { ...state, output, metadata: {}, time }
  const call = { ...place, type: "tool", callID: `call_${Date.now()}`, tool, state: done }
  return { info, parts: [...parts, info.role === "assistant" ? call : text] }
}

// Has a process wait beside the client, one at a time, which says when to wake the session that was prompted last.
function waiter(client, sessionNow) {
  let waiting = null
  const sit = () => {
    const one = spawn("sh", ["-c", `exec ${command} --wait`], { stdio: ["pipe", "ignore", "pipe"] })
    waiting = one
    let line = ""
    one.stdin.on("error", () => {})
    one.stdin.end()
    one.stderr.on("data", (data) => (line += data))
    one.on("error", () => (waiting = null))
    one.on("close", async (status, signal) => {
      waiting = null
      if (signal) setTimeout(() => waiting || sit(), AGAIN_AFTER_KILL) // somebody killed it, and nothing was said
      if (status !== WAKES && status !== INTERRUPTS) return
      const path = { id: sessionNow() }
      try {
        if (status === INTERRUPTS) await client.session.abort({ path })
        await client.session.promptAsync({ path, body: { parts: [{ type: "text", text: line.trim() }] } })
      } finally {
        if (!waiting) sit()
      }
    })
  }
  return () => {
    if (sessionNow() && !waiting) sit()
  }
}

// The words that the client was started with. Beside a terminal we run in a worker, whose own words lack them.
function commandLine() {
  try {
    return readFileSync("/proc/self/cmdline", "utf8").split("\0").slice(0, -1)
  } catch {
    return process.argv
  }
}

// The session that the command line names, before anything is said in it.
function namedSession() {
  const words = commandLine()
  const place = words.findIndex((word) => /^(-s|--session)(=|$)/.test(word))
  return place < 0 ? "" : (words[place].split("=")[1] ?? words[place + 1] ?? "")
}

// Whether it goes on with the session that was changed last, which nobody names.
const goesOn = () => commandLine().some((word) => word === "-c" || word === "--continue")

async function lastSession(client) {
  const { data } = await client.session.list()
  const own = (data ?? []).filter((info) => !info.parentID)
  return own.sort((one, other) => other.time.updated - one.time.updated)[0]?.id ?? ""
}

export const teams = async ({ client }) => {
  const named = process.env.TEAMS_AGENT_ID || process.env.OPENCODE_AGENT_ID
  const started = new Set()
  const refused = new Set()
  const children = new Map()
  const said = new Map()
  const greetings = new Map()
  // A session that another one started is an agent of its own, and its hooks are those of an agent inside the client.
  const inside = (event, id, more = {}) => ask(event, latest, { agent_id: id, ...more })
  const begins = (info) => {
    const kind = (info.title ?? "").match(/@([\w-]+) subagent/)?.[1] ?? ""
    children.set(info.id, info.parentID)
    greetings.set(info.id, contextIn(inside("SubagentStart", info.id, { agent_type: kind })))
  }
  const greeting = (id) => {
    const text = greetings.get(id)
    greetings.delete(id)
    return text
  }
  const ends = (id) => {
    inside("SubagentStop", id, { can_go_on: false, last_assistant_message: said.get(id) ?? "" })
    said.delete(id)
  }
  let latest = namedSession()
  let compacting = false
  const wait = waiter(client, () => latest)
  const begin = () => {
    ask("SessionStart", latest)
    wait()
  }
  // While a plugin is loaded, nobody answers what it asks for.
  const goOn = () =>
    lastSession(client)
      .then((id) => (latest ||= id))
      .catch(() => {})
      .then(begin)
  if (latest || !goesOn()) begin()
  else setTimeout(goOn, 0)
  return {
    event: async ({ event }) => {
      const about = event.properties ?? {}
      if (event.type === "session.created" && about.info?.parentID) begins(about.info)
      if (event.type === "session.idle" && children.has(about.sessionID)) ends(about.sessionID)
      if (!about.sessionID || children.has(about.sessionID)) return
      const doing = { state: "working", source: "plugin" }
      if (event.type === "session.idle") tell("TerminalState", about.sessionID, { state: "idle", source: "plugin" })
      if (event.type === "permission.replied") tell("TerminalState", about.sessionID, doing)
      if (event.type === "permission.asked") {
        const wish = { command: (about.patterns ?? []).join(" ") }
        tell("PermissionRequest", about.sessionID, { tool_name: about.permission, tool_input: wish })
      }
    },
    "chat.message": async (input, output) => {
      const child = children.has(input.sessionID)
      if (!child) latest = input.sessionID
      const text = child
        ? (greeting(input.sessionID) ?? contextIn(inside("UserPromptSubmit", input.sessionID)))
        : contextIn(ask("UserPromptSubmit", input.sessionID))
      const last = output.parts.at(-1)
      if (text && last) {
        const place = { id: `${last.id}z`, sessionID: last.sessionID, messageID: last.messageID }
        output.parts.push({ ...place, type: "text", text, synthetic: true })
      }
      if (!child) wait()
    },
    // Our server serves the whole client: for a session inside it is told who calls.
    "tool.execute.before": async (input, output) => {
      if (children.has(input.sessionID) && input.tool.startsWith("team_")) output.args._agent_id = input.sessionID
    },
    "tool.execute.after": async (input, output) => {
      if (children.has(input.sessionID)) {
        const mail = greeting(input.sessionID) ?? contextIn(inside("PostToolUse", input.sessionID))
        if (mail) output.output = `${output.output}\n\n${mail}`
        return
      }
      const first = named && !started.has(input.sessionID)
      started.add(input.sessionID)
      const text = contextIn(ask(first ? "SessionStart" : "PostToolUse", input.sessionID, { state: "working" }))
      if (text) output.output = `${output.output}\n\n${text}`
    },
    "experimental.session.compacting": async () => {
      compacting = true // what follows is no call of the agent's model
    },
    "experimental.chat.messages.transform": async (_, output) => {
      const last = output.messages.at(-1)
      const skip = compacting || !last
      compacting = false
      if (skip) return
      const id = last.info.sessionID
      const payload = await attention(children.has(id) ? latest : id, children.has(id) ? { agent_id: id } : {})
      if (payload) output.messages.splice(-1, 1, attentive(last, payload))
    },
    "experimental.text.complete": async (input, output) => {
      if (children.has(input.sessionID)) {
        said.set(input.sessionID, output?.text ?? "")
        return
      }
      const more = { stop_hook_active: refused.delete(input.sessionID), state: "working" }
      const reason = ask("Stop", input.sessionID, more).reason
      if (!reason) return
      refused.add(input.sessionID)
      const parts = [{ type: "text", text: reason }]
      await client.session.promptAsync({ path: { id: input.sessionID }, body: { parts } })
    },
  }
}
