// teams: hooks for OpenCode. Installed by `teams install opencode`; `teams uninstall opencode` takes it out.
// Mail is added to the result of a tool and to what the person says; an answer that would end the turn too early is
// followed by the reason. At the end of each request to the model stands, for that request alone, who is there and what
// is not handled yet. In a terminal a process of ours waits beside the client, and its end wakes the session.
//
// OpenCode 1 calls `server` of what is exported at the end, OpenCode 2 calls `setup`; what both do is in `member`.
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"

const command = "teams hook opencode"
const holding = `${command} --hold`
const WAKES = 2
const INTERRUPTS = 3
const AGAIN_AFTER_KILL = 1000
const PATIENCE = 30000

// What our hook answers to an event, an empty object where that is nothing. The client is not held up meanwhile.
function ask(event, sessionID, more = {}, words = command) {
  const input = JSON.stringify({ hook_event_name: event, session_id: sessionID, attends: true, ...more })
  return new Promise((done) => {
    const timeout = words === holding ? 0 : PATIENCE
    const asked = spawn("sh", ["-c", words], { stdio: ["pipe", "pipe", "ignore"], timeout })
    let said = ""
    asked.stdout.setEncoding("utf8").on("data", (data) => (said += data))
    asked.stdin.on("error", () => {})
    asked.stdin.end(input)
    asked.on("error", () => done({}))
    asked.on("close", () => {
      try {
        done(JSON.parse(said))
      } catch {
        done({})
      }
    })
  })
}

const contextIn = (said) => said.hookSpecificOutput?.additionalContext

// Has a process wait beside the client, one at a time, which says when to wake the session that was prompted last.
function waiter({ prompt, interrupt }, sessionNow) {
  let waiting = null
  let isOver = false
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
      if (signal) setTimeout(wait, AGAIN_AFTER_KILL) // somebody killed it, and nothing was said
      if (status !== WAKES && status !== INTERRUPTS) return
      const id = sessionNow()
      try {
        if (status === INTERRUPTS) await interrupt(id)
        await prompt(id, line.trim())
      } finally {
        wait()
      }
    })
  }
  const wait = () => {
    if (sessionNow() && !waiting && !isOver) sit()
  }
  const leave = () => {
    isOver = true
    waiting?.kill()
  }
  return { wait, leave }
}

// The client as a member of the team: what our hooks are asked when something happens in one of its sessions. A session
// that another one started is an agent of its own, and its hooks are those of an agent inside the client. `prompt` has
// a session take a turn, `interrupt` ends the turn that it is in.
function member(client, session) {
  const named = process.env.TEAMS_AGENT_ID || process.env.OPENCODE_AGENT_ID
  const prompted = new Set()
  const started = new Set()
  const refused = new Set()
  const children = new Set()
  const said = new Map()
  const greetings = new Map()
  let latest = session
  let telling = Promise.resolve()
  const { wait, leave } = waiter(client, () => latest)
  const inside = (event, id, more = {}) => ask(event, latest, { agent_id: id, ...more })
  const greeted = async (id, event) => {
    const greeting = greetings.get(id)
    greetings.delete(id)
    return contextIn(await (greeting ?? inside(event, id)))
  }
  // What is told one after the other, nobody waiting for an answer.
  const tell = (event, id, more) => (telling = telling.then(() => ask(event, id, more)))
  return {
    leave,
    isChild: (id) => children.has(id),
    knows: (id) => prompted.has(id) || children.has(id),
    // The client begins; with the session that it goes on with, if it does.
    async begins(id) {
      latest ||= id
      await ask("SessionStart", latest)
      wait()
    },
    hasChild(id, kind) {
      children.add(id)
      greetings.set(id, inside("SubagentStart", id, { agent_type: kind }))
    },
    // What the agent is to know beside the prompt that its session was given.
    async prompted(id) {
      if (children.has(id)) return greeted(id, "UserPromptSubmit")
      latest = id
      prompted.add(id)
      const text = contextIn(await ask("UserPromptSubmit", id))
      wait()
      return text
    },
    // What the agent is to know beside the result of a tool.
    async usedTool(id) {
      if (children.has(id)) return greeted(id, "PostToolUse")
      await telling // a child that ended has left
      const first = named && !started.has(id)
      started.add(id)
      return contextIn(await ask(first ? "SessionStart" : "PostToolUse", id, { state: "working" }))
    },
    // Who is there and what is not handled yet, as the result of a tool; for the next call of the model alone.
    async attention(id) {
      const of = children.has(id) ? { id: latest, more: { agent_id: id } } : { id, more: {} }
      const { tool, state } = await ask("ModelCall", of.id, of.more)
      return tool && { tool, ...state, output: JSON.stringify(state.output) }
    },
    // Why the agent may not end its turn with this answer; nothing if it may. That waits while others work for it.
    async answered(id, text) {
      if (children.has(id)) return void said.set(id, text)
      const more = { stop_hook_active: refused.delete(id), state: "working" }
      const { reason } = await ask("Stop", id, more, holding)
      if (reason) refused.add(id)
      return reason
    },
    async rests(id) {
      if (!children.has(id)) return void tell("TerminalState", id, { state: "idle", source: "plugin" })
      const last_assistant_message = said.get(id) ?? ""
      said.delete(id)
      await tell("SubagentStop", latest, { agent_id: id, can_go_on: false, last_assistant_message })
    },
    asks(id, tool, about) {
      if (children.has(id)) return
      tell("PermissionRequest", id, { tool_name: tool, tool_input: { command: (about ?? []).join(" ") } })
    },
    isPermitted(id) {
      if (!children.has(id)) tell("TerminalState", id, { state: "working", source: "plugin" })
    },
  }
}

const asText = ({ tool, title, output }) => `[${tool}] ${title}\n${output}`

// The words that a process was started with. Beside a terminal we run in a worker, whose own words lack them.
function commandLine(pid = "self") {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1)
  } catch {
    return pid === "self" ? process.argv : []
  }
}

// The session that a command line names, before anything is said in it.
function namedSession(words) {
  const place = words.findIndex((word) => /^(-s|--session)(=|$)/.test(word))
  return place < 0 ? "" : (words[place].split("=")[1] ?? words[place + 1] ?? "")
}

// Whether a command line has the client go on with the session that was changed last, which nobody names.
const goesOn = (words) => words.some((word) => word === "-c" || word === "--continue")

// Below: OpenCode 1.

async function lastSession(client) {
  const { data } = await client.session.list()
  const own = (data ?? []).filter((info) => !info.parentID)
  return own.sort((one, other) => other.time.updated - one.time.updated)[0]?.id ?? ""
}

// A message with the attention at its end: beside the calls that an answer made, since some models take no call of
// theirs that they did not think about; else as text after what was said to them.
function attentive({ info, parts }, attention) {
  const place = { id: `${parts.at(-1)?.id ?? info.id}zz`, sessionID: info.sessionID, messageID: info.id }
  const text = { ...place, type: "text", synthetic: true, text: asText(attention) }
  const { tool, ...state } = attention
  const done = { ...state, metadata: {}, time: { start: Date.now(), end: Date.now() } }
  const call = { ...place, type: "tool", callID: `call_${Date.now()}`, tool, state: done }
  return { info, parts: [...parts, info.role === "assistant" ? call : text] }
}

async function server({ client }) {
  const words = commandLine()
  const prompt = (id, text) => client.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", text }] } })
  const interrupt = (id) => client.session.abort({ path: { id } })
  const us = member({ prompt, interrupt }, namedSession(words))
  let compacting = false
  let isStored = () => {}
  // The turn goes on with a prompt that is stored before it ends, which takes longer than to be accepted.
  const goOn = async (id, text) => {
    const stored = new Promise((done) => {
      isStored = (of) => of === id && done()
      setTimeout(done, PATIENCE).unref?.()
    })
    await prompt(id, text)
    await stored
  }
  if (goesOn(words) && !namedSession(words)) {
    // While a plugin is loaded, nobody answers what it asks for.
    setTimeout(async () => us.begins(await lastSession(client).catch(() => "")), 0)
  } else await us.begins("")
  return {
    event: async ({ event: { type, properties: about = {} } }) => {
      const id = about.sessionID
      if (type === "session.created" && about.info?.parentID)
        us.hasChild(about.info.id, (about.info.title ?? "").match(/@([\w-]+) subagent/)?.[1] ?? "")
      if (type === "message.updated" && about.info?.role === "user") isStored(about.info.sessionID)
      if (type === "session.idle" && id) await us.rests(id)
      if (type === "permission.replied" && id) us.isPermitted(id)
      if (type === "permission.asked" && id) us.asks(id, about.permission, about.patterns)
    },
    "chat.message": async (input, output) => {
      const text = await us.prompted(input.sessionID)
      const last = output.parts.at(-1)
      if (!text || !last) return
      const place = { id: `${last.id}z`, sessionID: last.sessionID, messageID: last.messageID }
      output.parts.push({ ...place, type: "text", text, synthetic: true })
    },
    // Our server serves the whole client: for a session inside it is told who calls.
    "tool.execute.before": async (input, output) => {
      if (us.isChild(input.sessionID) && input.tool.startsWith("team_")) output.args._agent_id = input.sessionID
    },
    "tool.execute.after": async (input, output) => {
      const text = await us.usedTool(input.sessionID)
      if (text) output.output = `${output.output}\n\n${text}`
    },
    "experimental.session.compacting": async () => {
      compacting = true // what follows is no call of the agent's model
    },
    "experimental.chat.messages.transform": async (_, output) => {
      const last = output.messages.at(-1)
      const skip = compacting || !last
      compacting = false
      const attention = !skip && (await us.attention(last.info.sessionID))
      if (attention) output.messages.splice(-1, 1, attentive(last, attention))
    },
    "experimental.text.complete": async (input, output) => {
      const reason = await us.answered(input.sessionID, output?.text ?? "")
      if (reason) await goOn(input.sessionID, reason)
    },
  }
}

// Below: OpenCode 2, whose plugins run in a server. One that all terminals of the user share has the environment of
// whoever started it first, and knows no terminal: there we do nothing. `opencode --standalone` has a server of its own.

const isPrivate = () => commandLine().includes("--stdio")

// The content of a tool's result. One without content has the model shown its output.
function contentOf({ content, output }) {
  if (Array.isArray(content)) return content
  const text = content ?? (output === undefined ? "" : JSON.stringify(output))
  return text ? [{ type: "text", text }] : []
}

async function setup(ctx) {
  if (!isPrivate()) return
  const prompt = (sessionID, text) => ctx.session.prompt({ sessionID, text })
  const interrupt = (sessionID) => ctx.session.interrupt({ sessionID, continue: false })
  const us = member({ prompt, interrupt }, namedSession(commandLine(process.ppid)))
  const goOn = async (id) => {
    const reason = await us.answered(id)
    if (reason) await prompt(id, reason)
  }
  const hear = ({ type, data = {} }) => {
    const id = data.sessionID
    if (type === "session.created" && us.knows(data.parentID)) us.hasChild(id, data.agent ?? "")
    if (!us.knows(id)) return // the events are those of all that the server does
    if (type === "session.text.ended" && us.isChild(id)) us.answered(id, data.text)
    if (type === "session.step.ended" && data.finish === "stop" && !us.isChild(id)) goOn(id)
    if (/^session\.execution\.(succeeded|failed|interrupted)$/.test(type)) us.rests(id)
    if (/^permission\.(v2\.)?asked$/.test(type)) us.asks(id, data.action, data.resources)
    if (/^permission\.(v2\.)?replied$/.test(type)) us.isPermitted(id)
  }
  // Behind its Code Mode a model has to look for our tools first.
  await ctx.mcp.transform((servers) => {
    if (servers.get("team")) servers.update("team", (entry) => (entry.codemode = false))
  })
  await ctx.session.hook("prompt", async (event) => {
    const text = await us.prompted(event.sessionID)
    if (text) event.prompt.text = `${event.prompt.text}\n\n${text}`
  })
  await ctx.session.hook("context", async (event) => {
    const last = event.messages.at(-1)
    const attention = last && (await us.attention(event.sessionID))
    if (!attention) return
    const content = [{ type: "text", text: asText(attention) }]
    event.messages.push(Object.assign(Object.create(Object.getPrototypeOf(last)), { role: "user", content }))
  })
  await ctx.tool.hook("execute.before", (event) => {
    if (us.isChild(event.sessionID) && event.tool.startsWith("team_"))
      event.input = { ...event.input, _agent_id: event.sessionID }
  })
  await ctx.tool.hook("execute.after", async (event) => {
    const text = event.status === "completed" && (await us.usedTool(event.sessionID))
    if (text) event.result = { ...event.result, content: [...contentOf(event.result), { type: "text", text }] }
  })
  const isOver = new AbortController()
  const listen = async () => {
    for await (const event of ctx.event.subscribe({ signal: isOver.signal })) hear(event)
  }
  listen().catch(() => {}) // the server ends
  await us.begins("")
  return () => {
    isOver.abort()
    us.leave()
  }
}

export default { id: "teams", server, setup }
