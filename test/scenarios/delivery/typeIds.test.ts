/** Values of several types in one topic, told apart by header `__TypeId__`. */
import { assert, describe, it } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde, TypeId } from "@eventbus/core"
import { DeadLetters, TestBus } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { TestClock } from "effect/testing"

class MailServerDown extends Schema.TaggedError<MailServerDown>()("MailServerDown", {}) {}

const email = "com.extractor.unraveldocs.EmailMessage"
const user = "com.extractor.unraveldocs.UserMessage"
const messages = TypeId.serde({
  [email]: Serde.json(Schema.Struct({ to: Schema.String })),
  [user]: Serde.json(Schema.Struct({ id: Schema.Int }))
})

describe("values of several types", () => {
  it.effect(
    "SER-07 SEC-02 each value is decoded by its header, in retry topics too; a record with an untrusted name is dead-lettered",
    () => {
      const handled: Array<string> = []
      const binding = Binding.make("messages", {
        topic: "messages",
        groupId: "mailer",
        value: messages,
        retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "1 minute", maxAttempts: 1 }] }),
        onError: { MailServerDown: Route.retry },
        handler: ({ value: message, tier }) => {
          if (message._tag === email && tier === 0) return Effect.fail(new MailServerDown())
          return Effect.sync(() => {
            handled.push(message._tag === email ? `mail to ${message.value.to}` : `user ${message.value.id}`)
          })
        }
      })
      return Effect.gen(function* () {
        const bus = yield* TestBus.TestBus
        yield* bus.publish("messages", { value: { _tag: email, value: { to: "ann" } } })
        yield* bus.publish("messages", { value: { _tag: user, value: { id: 7 } } })
        const forged = new TextEncoder().encode('{"id":8}')
        yield* bus.publish("messages", { key: "forged", value: forged, headers: { __TypeId__: "com.evil.Runtime" } })
        yield* bus.publish("messages", { key: "bare", value: forged })
        yield* TestClock.adjust("1 minute")
        yield* bus.settled
        assert.deepStrictEqual(handled, ["user 7", "mail to ann"])
        assert.deepStrictEqual(
          (yield* bus.handled()).map(({ value }) => value),
          [
            { _tag: user, value: { id: 7 } },
            { _tag: email, value: { to: "ann" } }
          ]
        )
        yield* DeadLetters.expectExactly(
          "messages",
          ["forged", "bare"].map((key) => ({ key, value: '{"id":8}', exception: "DecodeFailure", totalAttempts: 0 }))
        )
        yield* DeadLetters.expectOne("messages", {
          key: "forged",
          message: `type-id cannot decode the record: header __TypeId__ is 'com.evil.Runtime', which is not trusted; trusted is ${email}, ${user}`
        })
      }).pipe(Effect.provide(TestBus.layer([binding])))
    }
  )
})
