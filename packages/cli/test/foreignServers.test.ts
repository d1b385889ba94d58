/** OPS-22: `--url` leads to a server that is no admin API, or one of another version: the command says so, ends, and gives the credential to nobody else. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { AddressInfo, Server } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { ClientCertificate } from "@eventbus/kafka-runner"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type Ended, withToken } from "./eventbus.ts"

const token = "a-token-for-one-server"

const listening = (server: Server & { readonly closeAllConnections: () => void }, scheme: string) =>
  Effect.acquireRelease(
    Effect.callback<string>((resume) => {
      server.listen(0, "127.0.0.1", () =>
        resume(Effect.succeed(`${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`))
      )
    }),
    () =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )

/** A server that answers everything so, and what it was asked. */
const foreign = Effect.fnUntraced(function* (answer: RequestListener) {
  const asked: Array<IncomingMessage> = []
  const server = createServer((request, response) => {
    asked.push(request)
    answer(request, response)
  })
  return { url: yield* listening(server, "http"), asked }
})

const json =
  (status: number, body: unknown): RequestListener =>
  (_, response) =>
    void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))

const status = (url: string) => withToken(token, "status", "--url", url)

/** No output, one short line of error, and the credential in none of it. */
const assertNo = ({ code, out, err }: Ended, expected: number, message: RegExp): void => {
  assert.deepStrictEqual([code, out], [expected, ""], err)
  assert.match(err, message)
  assert.isBelow(err.length, 700)
  assert.notInclude(err, token)
  assert.notInclude(err, "secret")
}

const otherAnswer = /^http:\/\/127\.0\.0\.1:\d+ answers something else than this version of the command knows: /

describe("OPS-22 --url and a server that is no admin API", () => {
  it.live("a redirect is followed nowhere: neither the credential nor a body comes to another host", () =>
    Effect.gen(function* () {
      const other = yield* foreign(json(200, []))
      for (const code of [301, 302, 303, 307, 308]) {
        const { url, asked } = yield* foreign(
          (_, response) => void response.writeHead(code, { location: `${other.url}/eventbus/health` }).end("moved")
        )
        assertNo(yield* status(url), 3, new RegExp(`it redirects to ${other.url}/eventbus/health`))
        const paused = yield* withToken(token, "pause", "orders", "--reason", "a secret reason", "--url", url)
        assertNo(paused, 3, /it redirects to/)
        assert.deepStrictEqual(
          asked.map(({ headers }) => headers.authorization),
          [`Bearer ${token}`, `Bearer ${token}`]
        )
      }
      assert.deepStrictEqual(other.asked.length, 0)
    })
  )

  it.effect("one that never answers is given up after 20 seconds", () =>
    Effect.gen(function* () {
      const { url } = yield* foreign(() => {})
      const asking = yield* Effect.forkChild(status(url), { startImmediately: true })
      assertNo(yield* passing(asking, 25), 3, /it is silent for 20 seconds/)
    })
  )

  it.effect("one that works on a long command, and says that it lives, is waited for", () =>
    Effect.gen(function* () {
      let held: ServerResponse | undefined
      const { url, asked } = yield* foreign((request, response) => {
        if (request.method === "GET") json(401, { _tag: "Unauthorized", message: "no" })(request, response)
        else held = response
      })
      const pause = withToken(token, "pause", "orders", "--reason", "INC-1204", "--url", url)
      const asking = yield* Effect.forkChild(pause, { startImmediately: true })
      yield* passing(asking, 60)
      assert.isUndefined(asking.pollUnsafe())
      const questions = asked.filter(({ method }) => method === "GET")
      assert.isAtLeast(questions.length, 2)
      assert.deepStrictEqual(
        questions.flatMap(({ headers }) => headers.authorization ?? []),
        []
      )
      json(404, { _tag: "BindingNotFound", message: "none", binding: "orders" })(asked[0]!, held!)
      assertNo(yield* Fiber.join(asking), 1, /^none\n$/)
    })
  )

  it.live("no JSON, JSON of something else, 10 MB of it, and an answer without end are named in one line", () =>
    Effect.gen(function* () {
      const html = yield* foreign((_, response) => void response.end(`<html>${"<p>Sign in</p>".repeat(10_000)}`))
      assertNo(yield* status(html.url), 3, otherAnswer)
      const broken = yield* foreign(
        (_, response) => void response.writeHead(200, { "content-type": "application/json" }).end('{"status": "U')
      )
      assertNo(yield* status(broken.url), 3, otherAnswer)
      const large = yield* foreign(json(200, { status: "x".repeat(10_000_000) }))
      assertNo(yield* status(large.url), 3, otherAnswer)
      const chunk = Buffer.alloc(1_024 * 1_024, " ")
      const endless = yield* foreign((_, response) => {
        response.writeHead(200, { "content-type": "application/json" })
        const more = () => {
          while (!response.destroyed && response.write(chunk));
        }
        response.on("drain", more)
        more()
      })
      assertNo(yield* status(endless.url), 3, /its answer is longer than 64 MiB/)
      const cut = yield* foreign((_, response) => {
        response.writeHead(200, { "content-type": "application/json", "content-length": "1000" })
        response.write("{")
        setTimeout(() => response.destroy(), 20)
      })
      assertNo(yield* status(cut.url), 3, /127\.0\.0\.1/)
    })
  )

  it.live("a credential that no request can carry is refused, and not shown", () =>
    Effect.gen(function* () {
      const { url, asked } = yield* foreign(json(200, []))
      for (const bad of ["two\nlines-of-a-secret", "käse-as-a-secret", "a-secret\u0000"])
        assertNo(yield* withToken(bad, "status", "--url", url), 2, /^EVENTBUS_TOKEN has a character/)
      assert.strictEqual(asked.length, 0)
      yield* withToken("a-secret-from-a-file\n", "status", "--url", url)
      assert.strictEqual(asked[0]!.headers.authorization, "Bearer a-secret-from-a-file")
    })
  )

  it.live("https with a certificate of an unknown authority is refused, with the way to trust it", () =>
    Effect.gen(function* () {
      const { cert, key } = ClientCertificate.make("localhost")
      const server = createTlsServer({ cert, key }, json(200, []))
      const url = yield* listening(server, "https")
      assertNo(yield* status(url), 3, /self-signed certificate.*; NODE_EXTRA_CA_CERTS=/)
    })
  )
})

const health = { status: "UP", live: true, ready: true, reasons: [] }

const binding = {
  ...{ key: "default:orders", name: "orders", cluster: "default", topic: "orders", groupId: "billing" },
  ...{ state: "RUNNING", since: "2026-11-28T09:30:00.000Z", pausedBy: [], pausedTiers: [], lag: 0 },
  ...{ partitions: 1, consumersRunning: 1 }
}

/** The same answers as a process, but for some. */
const process = (bindings: RequestListener, healthAnswer: RequestListener = json(200, health)) =>
  foreign((request, response) =>
    request.url === "/eventbus/health" ? healthAnswer(request, response) : bindings(request, response)
  )

describe("OPS-22 --url and a process of another version", () => {
  it.live("fields that a later version adds change nothing", () =>
    Effect.gen(function* () {
      const { url } = yield* process(json(200, [{ ...binding, mood: "good" }]), json(200, { ...health, more: [1] }))
      const found = yield* status(url)
      assert.deepStrictEqual([found.code, found.err], [0, ""])
      assert.match(found.out, /default:orders {2}RUNNING/)
    })
  )

  it.live("an answer that this version does not know is named, and an error is shown in the words of the process", () =>
    Effect.gen(function* () {
      const later = yield* process(json(200, [{ ...binding, state: "HIBERNATING" }]))
      assertNo(yield* status(later.url), 3, otherAnswer)
      for (const [code, exit] of [
        [409, 1],
        [429, 1],
        [404, 1],
        [500, 3],
        [503, 3]
      ] as const) {
        const { url } = yield* foreign(json(code, { _tag: "OfALaterVersion", message: "The moon is full." }))
        assertNo(yield* status(url), exit, /^The moon is full\.\n$/)
      }
      const proxy = yield* foreign((_, response) => void response.writeHead(502).end("<h1>Bad Gateway</h1>"))
      assertNo(
        yield* status(proxy.url),
        3,
        / answers, with status 502, something else than this version of the command knows: /
      )
    })
  )

  it.live("no text of the server drives the terminal", () =>
    Effect.gen(function* () {
      const hostile = "\u001b]0;owned\u0007\u001b[2J"
      const refusing = yield* foreign(json(409, { _tag: "OfALaterVersion", message: `No ${hostile}` }))
      const refused = yield* status(refusing.url)
      assert.strictEqual(refused.code, 1)
      const { url } = yield* process(json(200, [{ ...binding, key: hostile, since: hostile, groupId: hostile }]))
      const shown = yield* status(url)
      assert.strictEqual(shown.code, 0)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
      for (const text of [refused.err, shown.out]) assert.notMatch(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
    })
  )
})

/** Lets seconds pass until the command has ended, and the sockets have their turn in between. */
const passing = (asking: Fiber.Fiber<Ended>, seconds: number): Effect.Effect<Ended> =>
  Effect.gen(function* () {
    for (let second = 0; second < seconds; second++) {
      yield* TestClock.adjust("1 second")
      yield* Effect.promise(() => new Promise((resume) => setTimeout(resume, 20)))
      const exit = asking.pollUnsafe()
      if (exit !== undefined) return yield* exit
    }
    return { code: null, out: "", err: "" }
  })
