/** Requests around the end of a session (KIP-368), on a node that takes up one request at a time and closes the connection when it comes to one too late. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { answering, apiKey, authenticating, clientOf, echo, makeNode, type Received } from "./scriptedNode.ts"

/** Renewed after 1.1 s, the shortest pause between two authentications. */
const life = 1_400

/** Takes `millis` for each request. */
const strict = (millis: number) => {
  let endsAt = Number.POSITIVE_INFINITY
  const queue: Array<Received> = []
  let isBusy = false
  const takeUp = (): void => {
    const request = isBusy ? undefined : queue.shift()
    if (request === undefined) return
    if (request.apiKey < apiKey.saslHandshake && performance.now() > endsAt) return void request.socket.destroy()
    isBusy = true
    setTimeout(
      () => {
        isBusy = false
        if (request.apiKey === apiKey.saslAuthenticate) endsAt = performance.now() + life
        answering(life)(request)
        takeUp()
      },
      request.apiKey < apiKey.saslHandshake ? millis : 0
    )
  }
  return (request: Received): void => {
    queue.push(request)
    takeUp()
  }
}

// One of them blocks the process.
describe("sessions", () => {
  it.live("CLN-16 a request that the node would take up after the end of the session waits for the next session", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(strict(400))
      const { client } = yield* clientOf(node, { ...authenticating(), requestTimeoutMillis: 5_000 })
      yield* Effect.promise(client.connect)
      const texts = Array.from({ length: 8 }, (_, index) => `request ${index}`)
      const answers = yield* Effect.promise(() => Promise.all(texts.map((text) => client.send(echo(text)))))
      assert.deepStrictEqual(answers, texts)
      assert.strictEqual(node.received.at(-1)?.connection, 1)
    })
  )

  it.live("CLN-16 after a pause of the process that outlasts the session, the session is renewed first", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(strict(0))
      const { client } = yield* clientOf(node, authenticating())
      yield* Effect.promise(client.connect)
      const answer = yield* Effect.promise(() => {
        const endsAt = performance.now() + life + 100
        while (performance.now() < endsAt);
        return client.send(echo("late"))
      })
      assert.strictEqual(answer, "late")
      assert.strictEqual(node.received.at(-1)?.connection, 1)
    })
  )
})
