/** A process that was stopped for a while: the tests block it, so they are alone in their file. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { apiKey, clientOf, echo, makeNode, ready } from "./scriptedNode.ts"

describe("pauses", () => {
  it.live("after a pause of the process, an answer that has come by then counts", () =>
    Effect.gen(function* () {
      const node = yield* makeNode(ready(({ answer }) => void setTimeout(answer, 100)))
      const { client } = yield* clientOf(node, { requestTimeoutMillis: 300 })
      const answer = client.send(echo("there"))
      while (!node.received.some(({ apiKey: key }) => key === apiKey.metadata)) yield* Effect.sleep(1)
      const endsAt = performance.now() + 400
      while (performance.now() < endsAt);
      assert.strictEqual(yield* Effect.promise(() => answer), "there")
    })
  )
})
