// A stub of the host in which OpenCode 2 runs plugins, as its documentation has it (opencode.ai/v2/docs/build/plugins):
// the program could not be had. It plays one session, with one inside it, and prints what the plugin made of that, one
// JSON document a line; then it waits for a prompt of the plugin's own.
import { spawnSync } from "node:child_process"

const plugin = (await import(process.argv[2])).default
const mail = (text) => spawnSync("teams", ["send-message", "agentA", text, "--as", "lea"])
const say = (document) => console.log(JSON.stringify(document))

const hooks = { session: {}, tool: {} }
const hook = (domain) => async (name, callback) => {
  ;(hooks[domain][name] ??= []).push(callback)
  return { dispose: async () => {} }
}
async function runHooks(domain, name, event) {
  for (const callback of hooks[domain][name] ?? []) await callback(event)
  return event
}

const stream = []
let heard = () => {}
function publish(type, data) {
  stream.push({ type, data })
  heard()
}
async function* subscribe({ signal }) {
  while (!signal.aborted) {
    while (stream.length) yield stream.shift()
    await new Promise((done) => (heard = done))
  }
}

// A prompt is admitted after its hooks have run, of whoever it is.
let admitted = () => {}
async function prompt({ sessionID, text }) {
  const event = { sessionID, messageID: "msg_1", prompt: { text, files: [] }, delivery: "steer" }
  await runHooks("session", "prompt", event)
  admitted(event.prompt.text)
}
const nextPrompt = () => new Promise((done) => (admitted = done))
const given = async (sessionID, text) => {
  const next = nextPrompt()
  await prompt({ sessionID, text })
  return next
}

class Message {
  constructor(role, text) {
    Object.assign(this, { role, content: [{ type: "text", text }] })
  }
}
const servers = { team: { type: "local", command: ["teams", "mcp"] } }
const cleanup = await plugin.setup({
  app: { version: "2.2.6" },
  location: { directory: process.cwd() },
  mcp: { transform: async (edit) => edit({ get: (name) => servers[name], update: (name, change) => change(servers[name]) }) },
  session: { hook: hook("session"), prompt, interrupt: async () => {} },
  tool: { hook: hook("tool") },
  event: { subscribe },
})
if (!hooks.session.prompt) {
  say({ hooks })
  process.exit(0)
}
const [main, child] = ["ses_main", "ses_child"]
say({ codemode: servers.team.codemode, prompted: await given(main, "go") })

const messages = [new Message("user", "go")]
await runHooks("session", "context", { sessionID: main, messages })
say({ context: messages.map(({ role, content }) => [role, content.at(-1).text]), made: messages.at(-1) instanceof Message })

publish("session.created", { sessionID: child, parentID: main, agent: "explore" })
await new Promise((done) => setTimeout(done)) // it is heard
const inside = await given(child, "look")
const before = { sessionID: child, tool: "team_brief", input: {} }
await runHooks("tool", "execute.before", before)
publish("session.text.ended", { sessionID: child, text: "It is a.py" })
publish("session.execution.succeeded", { sessionID: child })
await new Promise((done) => setTimeout(done))
const results = []
for (const result of [{ content: "listing" }, { output: { files: 2 } }]) {
  mail("see a.py")
  const event = { sessionID: main, tool: "shell", input: {}, status: "completed", result }
  results.push((await runHooks("tool", "execute.after", event)).result)
}
say({ inside, input: before.input, results })

mail("the build is red")
const reason = nextPrompt()
publish("session.step.ended", { sessionID: "ses_of_others", finish: "stop" })
publish("session.step.ended", { sessionID: main, finish: "tool-calls" })
publish("session.step.ended", { sessionID: main, finish: "stop" })
say({ reason: await reason })
publish("session.execution.succeeded", { sessionID: main })
const woken = nextPrompt()
say({ idle: true })
say({ woken: await woken })
await cleanup()
process.exit(0)
