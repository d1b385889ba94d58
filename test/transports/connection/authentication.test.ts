/** Authentication on connections of our own, and again before each session ends (KIP-368). */
import { assert, describe, it } from "@effect/vitest"
import { ClientFailure } from "@eventbus/kafka-client"
import { Effect } from "effect"
import {
  answering,
  apiKey,
  authenticated,
  authenticating,
  clientOf,
  echo,
  failureOf,
  makeNode,
  type Received,
  refused,
  type ScriptedNode
} from "./scriptedNode.ts"

/** Renewed after 1.1 s, the shortest pause between two authentications. */
const shortLife = 1_150

const exchange = { start: () => Buffer.from("secret"), next: () => undefined }

const authentications = ({ received }: ScriptedNode): ReadonlyArray<Received> =>
  received.filter(({ apiKey: key }) => key === apiKey.saslAuthenticate)

/** Answers the first authentication, and does something else with those that follow. */
const firstThen = (script: ScriptedNode["script"]) => {
  let count = 0
  return (request: Received): void => {
    if (request.apiKey !== apiKey.saslAuthenticate || count++ === 0) answering(shortLife)(request)
    else script(request)
  }
}

describe.concurrent("authentication", () => {
  it.live("a refusal has the broker's text, is told to the credentials, and closes the socket", () =>
    Effect.gen(function* () {
      const node = yield* makeNode((request) =>
        request.apiKey === apiKey.saslAuthenticate ? request.answer(refused(58, "no such user")) : answering()(request)
      )
      let told = 0
      const prepare = async () => ({ ...exchange, refused: () => void told++ })
      const { client } = yield* clientOf(node, authenticating(prepare))
      assert.deepInclude(yield* failureOf(client.connect()), { type: "AUTHENTICATION", detail: "no such user" })
      assert.strictEqual(told, 1)
      yield* Effect.sleep(50)
      assert.strictEqual(node.connections(), 0)
    })
  )

  it.live("a broker that does not prove itself is refused, and credentials that are not there are named", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(answering())
      const next = () => {
        throw new Error("no proof")
      }
      const unproved = yield* clientOf(
        node,
        authenticating(async () => ({ ...exchange, next }))
      )
      assert.deepInclude(yield* failureOf(unproved.client.connect()), { type: "AUTHENTICATION", detail: "no proof" })
      const missing = ClientFailure.failure(ClientFailure.Local.credentials, "no file")
      const without = yield* clientOf(
        node,
        authenticating(() => Promise.reject(missing))
      )
      assert.deepInclude(yield* failureOf(without.client.connect()), { type: "CREDENTIALS", detail: "no file" })
    })
  )

  it.live("CLN-16 nothing is sent while a session is renewed, and no request fails for it", () =>
    Effect.gen(function* () {
      const overlaps: Array<string> = []
      let unanswered = 0
      let isRenewing = false
      const node = yield* makeNode((request) => {
        const { answer, apiKey: key } = request
        if (key === apiKey.saslHandshake && unanswered > 0) overlaps.push(`${unanswered} requests wait for answers`)
        if (key === apiKey.saslHandshake) isRenewing = true
        if (key === apiKey.saslAuthenticate) {
          setTimeout(() => {
            isRenewing = false
            answer(authenticated(shortLife))
          }, 40)
        } else if (key === apiKey.metadata) {
          if (isRenewing) overlaps.push("a request came during an authentication")
          unanswered++
          setTimeout(() => {
            unanswered--
            answer()
          }, 5)
        } else answering()(request)
      })
      const { client } = yield* clientOf(node, authenticating())
      const endsAt = performance.now() + 4_000
      const sendUntilTheEnd = async (name: string): Promise<void> => {
        for (let count = 0; performance.now() < endsAt; count++) {
          assert.strictEqual(await client.send(echo(`${name} ${count}`)), `${name} ${count}`)
        }
      }
      yield* Effect.promise(() => Promise.all(Array.from({ length: 16 }, (_, index) => sendUntilTheEnd(`${index}`))))
      assert.deepStrictEqual(overlaps, [])
      const times = authentications(node).map(({ at }) => at)
      assert.isAtLeast(times.length, 3)
      for (const [index, at] of times.slice(1).entries()) assert.isAtLeast(at - times[index]!, 1_000)
      assert.strictEqual(node.received.at(-1)?.connection, 1)
    })
  )

  it.live(
    "a session that cannot be renewed ends the connection: requests fail by name, and none of them was sent",
    () =>
      Effect.gen(function* () {
        const late = ({ answer }: Received) => void setTimeout(() => answer(refused(58, "the user is gone")), 400)
        const node = yield* makeNode(firstThen(late))
        const { client } = yield* clientOf(node, authenticating())
        yield* Effect.promise(client.connect)
        yield* Effect.sleep(1_250)
        assert.deepInclude(yield* failureOf(client.send(echo("held"))), {
          type: "AUTHENTICATION",
          detail: "the user is gone"
        })
        yield* Effect.sleep(50)
        assert.isFalse(node.received.some(({ apiKey: key }) => key === apiKey.metadata))
        assert.strictEqual(node.connections(), 0)
      })
  )

  it.live("a session of a year is not renewed at once", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(answering(365 * 86_400_000))
      const { client } = yield* clientOf(node, authenticating())
      yield* Effect.promise(client.connect)
      yield* Effect.sleep(1_300)
      assert.strictEqual(authentications(node).length, 1)
    })
  )
})
