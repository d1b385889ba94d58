/** Handlers that are async functions: what settles, throws, hangs or ignores its signal. */

import { DeadLetterRecord } from "@eventbus/core"
import {
  after,
  type ConsumerOptions,
  consumer,
  createEventBus,
  deadLetter,
  nextTier,
  on,
  Serde,
  skip,
  tier
} from "@eventbus/node"
import { memoryKafka } from "@eventbus/node/testing"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { startBus, until } from "./bus.ts"

class CardDeclined extends Error {}
class ExpiredCard extends CardDeclined {}
class Duplicate extends Error {}
class RateLimited extends Error {
  readonly retryAfter = "30s"
}

const hostile = () => {
  throw new SyntaxError("hostile")
}

const thenable: string = "then"

/** Begins with its `then`, as the queries of some clients do. */
const late = <P extends object>(promise: P): P =>
  Object.defineProperty(promise, thenable, {
    value: (onFulfilled: () => void, onRejected: () => void) =>
      Promise.reject(new RangeError("late")).then(onFulfilled, onRejected)
  })
const noRetries = { blocking: { maxAttempts: 1 }, tiers: [] }
const base = { topic: "orders", groupId: "billing", value: Serde.string }

/** The dead letters of a consumer whose handler does this for one record. */
const deadLettersOf = async (options: Omit<Parameters<typeof consumer<string>>[0], keyof typeof base>) => {
  const tested = await startBus({ consumers: { orders: consumer({ ...base, ...options } as never) } })
  await tested.bus.publish("orders", { key: "k", value: "o-1" })
  await until(async () => (await tested.kafka.records("orders.DLT")).length === 1)
  const [letter] = await tested.kafka.records("orders.DLT")
  return { ...tested, letter: DeadLetterRecord.read(letter!) }
}

describe("a promise handler", () => {
  it("RCH-04: a promise that fulfils means handled, and the offset is committed", async () => {
    const handled: Array<string> = []
    const { bus, kafka } = await startBus({
      consumers: { orders: consumer({ ...base, handler: async ({ value }) => void handled.push(value) }) }
    })
    await bus.publish("orders", { value: "o-1" })
    await until(async () => (await kafka.committed("billing", "orders", 0)) === 1n)
    expect(handled).toEqual(["o-1"])
  })

  it("RCH-04: a function that returns no promise has handled its record when it returns", async () => {
    const { bus, kafka } = await startBus({ consumers: { orders: consumer({ ...base, handler: () => undefined }) } })
    await bus.publish("orders", { value: "o-1" })
    await until(async () => (await kafka.committed("billing", "orders", 0)) === 1n)
  })

  it("RCH-04: a rejection is tried again in place, in the retry topics, and then dead-lettered with the class of the error", async () => {
    let calls = 0
    const { letter } = await deadLettersOf({
      handler: async () => {
        calls++
        throw new RangeError("too much")
      },
      retry: { blocking: { maxAttempts: 2, initialBackoff: 1 }, tiers: [{ delay: "10ms", maxAttempts: 1 }] }
    })
    expect(calls).toBe(4)
    expect(letter.lastExceptionClass).toBe("RangeError")
  })

  it("RCH-04 MSG-20: the waits of one retry topic grow, and end with their number or their time", async () => {
    const calls: Array<number> = []
    const retry = {
      blocking: { maxAttempts: 1 },
      tiers: [{ delay: "10ms", multiplier: 20, maxDelay: "1m", maxAttempts: 5 }],
      maxElapsedTime: "3s"
    }
    await deadLettersOf({
      handler: async () => {
        calls.push(performance.now())
        throw new RangeError("too much")
      },
      retry
    })
    expect(calls).toHaveLength(3)
    expect(calls[2]! - calls[1]!).toBeGreaterThanOrEqual(199)
  })

  it.each([
    [
      "a synchronous throw",
      () => {
        throw new TypeError("at once")
      },
      "TypeError"
    ],
    [
      "a thrown text",
      () => {
        throw "a text"
      },
      "string"
    ],
    ["a rejection with nothing", () => Promise.reject(), "undefined"],
    ["a rejection with null", () => Promise.reject(null), "null"],
    ["an Effect, which nobody would run", () => Effect.void as never, "TypeError"],
    ["a promise of an Effect", async () => Effect.void, "TypeError"],
    ["a promise with a `then` of its own, which rejects", () => late(new Promise<void>(() => {})), "RangeError"],
    ["a thenable that throws", () => Object.defineProperty({}, thenable, { get: hostile }), "SyntaxError"]
  ] as const)("RCH-04: %s is a failed attempt", async (_, handler, className) => {
    const { letter } = await deadLettersOf({ handler: handler as () => void, retry: noRetries })
    expect(letter.lastExceptionClass).toBe(className)
  })

  it("RCH-04: rules by class decide: the first that the error is an instance of, subclasses included", async () => {
    const calls: Array<string> = []
    const errors: Record<string, Error> = {
      a: new ExpiredCard("no"),
      b: new Duplicate("twice"),
      c: new RateLimited("slow"),
      d: new Error("odd")
    }
    const { bus, kafka } = await startBus({
      consumers: {
        orders: consumer({
          ...base,
          handler: async ({ value, tier }) => {
            calls.push(`${value}${tier}`)
            if (tier === 0) throw errors[value]
          },
          onError: [
            on(CardDeclined, ({ message }) => deadLetter(`declined: ${message}`)),
            on(Duplicate, skip),
            on(RateLimited, ({ retryAfter }) => after(retryAfter)),
            on(Error, nextTier)
          ],
          retry: { tiers: ["10ms", "1m"] }
        })
      }
    })
    for (const value of ["a", "b", "c", "d"]) await bus.publish("orders", { value })
    await until(() => calls.includes("d1"))
    expect(calls).toEqual(["a0", "b0", "c0", "d0", "d1"])
    const [letter] = await kafka.records("orders.DLT")
    expect(DeadLetterRecord.read(letter!).dltDetail).toBe("declined: no")
    expect((await kafka.records("orders.retry-2")).length).toBe(1)
  })

  it("RCH-04: errors without a rule go to the exception lists of the settings", async () => {
    const { letter } = await deadLettersOf({
      handler: () => Promise.reject(new Error("timed out after 3 s")),
      onError: [on(Duplicate, skip)],
      retry: { nonRetryableExceptions: [/timed? out/i] }
    })
    expect(letter.dltReason).toBe("NON_RETRYABLE")
  })

  it("RCH-04: the processing budget aborts the signal, and the record goes on when the promise has settled", async () => {
    const story: Array<string> = []
    const { letter } = await deadLettersOf({
      handler: (_, { signal }) =>
        new Promise((_, reject) => {
          story.push("begin")
          signal.addEventListener("abort", () => {
            story.push("aborted")
            setTimeout(() => {
              story.push("settled")
              reject(signal.reason)
            }, 50)
          })
        }),
      maxPollInterval: 500,
      retry: { blocking: { maxAttempts: 1 }, tiers: [{ delay: 1, maxAttempts: 1 }] }
    })
    expect(story).toEqual(["begin", "aborted", "settled", "begin", "aborted", "settled"])
    expect(letter.lastExceptionClass).toBe("ProcessingBudgetExceeded")
  })

  it("RCH-04: a promise that never settles is left behind after maxPollInterval, and an error line names its consumer", async () => {
    const { lines } = await deadLettersOf({
      handler: () => new Promise(() => undefined),
      maxPollInterval: 200,
      retry: noRetries
    })
    expect(
      lines.filter((line) => line.includes("the handler of consumer 'orders' resists its interruption")).length
    ).toBe(1)
  })

  it("RCH-04: a promise that is left behind may reject later, and the process goes on", async () => {
    let reject: (error: Error) => void = () => undefined
    const { bus } = await deadLettersOf({
      handler: () => new Promise((_, rejects) => (reject = rejects)),
      maxPollInterval: 100,
      retry: noRetries
    })
    reject(new Error("late"))
    await new Promise((resolve) => setTimeout(resolve, 10))
    expect(bus.health().status).not.toBe("DOWN")
  })

  it("RCH-04: a stop aborts what still runs after the drain, waits for it, and the record is not lost", async () => {
    const story: Array<string> = []
    const { bus, kafka } = await startBus({
      consumers: {
        orders: consumer({
          ...base,
          shutdownTimeout: "1s",
          handler: (_, { signal }) =>
            new Promise((_, reject) => {
              story.push("begin")
              signal.addEventListener("abort", () => {
                story.push("aborted")
                reject(signal.reason)
              })
            })
        })
      }
    })
    await bus.publish("orders", { value: "o-1" })
    await until(() => story.length === 1)
    await bus.stop()
    expect(story).toEqual(["begin", "aborted"])
    expect((await kafka.committed("billing", "orders", 0)) ?? 0n).toBe(0n)
  })

  it("RCH-04: a handler that ignores its signal holds a stop no longer than shutdownTimeout", async () => {
    let calls = 0
    const { bus } = await startBus({
      consumers: {
        orders: consumer({
          ...base,
          shutdownTimeout: "500ms",
          handler: () => {
            calls++
            return new Promise(() => undefined)
          }
        })
      }
    })
    await bus.publish("orders", { value: "o-1" })
    await until(() => calls === 1)
    const began = performance.now()
    await bus.stop()
    expect(performance.now() - began).toBeLessThan(2_000)
  })

  it("RCH-04: a rebalance aborts what still runs after the drain, and the next owner of the partition handles the record", async () => {
    const kafka = memoryKafka({ topics: { orders: 2 } })
    const [begun, aborted, taken]: [Array<number>, Array<number>, Array<number>] = [[], [], []]
    const busOf = (handler: ConsumerOptions<Uint8Array | null, string>["handler"]) =>
      createEventBus({
        ...{ kafka, signals: [], log: "off" },
        consumers: { orders: consumer({ ...base, rebalanceTimeout: "1s", shutdownTimeout: "500ms", handler }) }
      })
    const first = busOf(
      ({ record }, { signal }) =>
        new Promise((_, reject) => {
          begun.push(record.partition)
          signal.addEventListener("abort", () => {
            aborted.push(record.partition)
            reject(signal.reason)
          })
        })
    )
    const second = busOf(({ record }) => void taken.push(record.partition))
    await first.start()
    for (const partition of [0, 1]) await first.publish("orders", { value: "o-1", partition })
    await until(() => begun.length === 2)
    await second.start()
    await until(() => taken.length === 1)
    expect(aborted).toEqual(taken)
    await Promise.all([first.stop(), second.stop()])
    await kafka.close()
  })

  it("RCH-04: interceptors run around the handler, and see its error", async () => {
    const story: Array<string> = []
    await deadLettersOf({
      handler: () => {
        story.push("handler")
        throw new Duplicate("twice")
      },
      interceptors: [
        async ({ topic }, next) => {
          story.push(`before ${topic}`)
          await next().catch((error: Error) => story.push(error.message))
        }
      ],
      retry: noRetries
    })
    expect(story).toEqual(["before orders", "handler", "twice"])
  })

  it("RCH-04: a tier that a rule names and the settings do not have is refused at the start", async () => {
    const start = startBus({
      consumers: { orders: consumer({ ...base, handler: () => undefined, onError: [on(Error, tier(4))] }) }
    })
    await expect(start).rejects.toThrow("consumers.orders.onError[0]: found tier 4, allowed is a tier from 1 to 3")
  })

  it("RCH-04: a wrong duration and a wrong tier are told at once", async () => {
    const retry = { tiers: ["10 moons", "1m"] }
    const orders = consumer({ ...base, handler: () => undefined, onError: [on(Error, tier(4))], retry })
    await expect(startBus({ consumers: { orders } })).rejects.toMatchObject({
      issues: [
        { path: "consumers.orders.retry.tiers[0]", found: '"10 moons"' },
        { path: "consumers.orders.onError[0]", found: "tier 4", allowed: "a tier from 1 to 2" }
      ]
    })
  })
})
