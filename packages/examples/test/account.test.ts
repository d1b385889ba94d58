import { assert, describe, it } from "@effect/vitest"
import type { ConsumerRecord } from "@eventbus/core"
import { account } from "../src/demo/account.ts"
import type { Evidence } from "../src/demo/evidence.ts"

const bytes = (text: string) => new TextEncoder().encode(text)

const record = (topic: string, offset: number, value: string, headers: Readonly<Record<string, string>> = {}) =>
  ({
    topic,
    partition: 0,
    offset: BigInt(offset),
    timestamp: 0,
    key: bytes("ann"),
    value: bytes(value),
    headers: Object.entries(headers).map(([key, text]) => ({ key, value: bytes(text) }))
  }) satisfies ConsumerRecord.ConsumerRecord

const order = (offset: number, id = `o-${offset}`) =>
  record("orders", offset, `order ${offset}`, { "x-eventbus-event-id": id })
const payment = (offset: number) => ({ ...record("payments", offset, ""), key: bytes(`orders-0-${offset}`) })
const letter = (offset: number, { value = `order ${offset}`, exception = "CardDeclined", attempts = 1 } = {}) =>
  record("orders.DLT", offset, value, {
    "x-eventbus-original-topic": "orders",
    "x-eventbus-original-partition": "0",
    "x-eventbus-original-offset": String(offset),
    "x-eventbus-last-exception-class": exception,
    "x-eventbus-dlt-reason": "NON_RETRYABLE",
    "x-eventbus-total-attempts": String(attempts)
  })

/** Two orders: the first is paid, the second dead-lettered. */
const evidence: Evidence = {
  placed: new Set(["o-0", "o-1"]),
  orders: [order(0), order(1)],
  payments: [payment(0)],
  deadLetters: [letter(1)],
  retrying: [],
  committed: new Map([[0, 2n]])
}

const nowhere: ReadonlySet<number> = new Set()

describe("the demo's account", () => {
  it("finds every order once", () => {
    const { produced, paid, deadLettered, deadLetterGroups, problems } = account(evidence, nowhere)
    assert.deepStrictEqual(
      { produced, paid, deadLettered, problems },
      { produced: 2, paid: 1, deadLettered: 1, problems: [] }
    )
    assert.deepStrictEqual(deadLetterGroups, [
      { exception: "CardDeclined", reason: "NON_RETRYABLE", count: 1, attempts: [{ attempts: 1, count: 1 }] }
    ])
  })

  it("groups dead letters by error, with their attempts", () => {
    const deadLetters = [letter(1, { attempts: 4 }), letter(2), letter(3)]
    assert.deepStrictEqual(account({ ...evidence, deadLetters }, nowhere).deadLetterGroups, [
      {
        exception: "CardDeclined",
        reason: "NON_RETRYABLE",
        count: 3,
        attempts: [
          { attempts: 1, count: 2 },
          { attempts: 4, count: 1 }
        ]
      }
    ])
  })

  it("distinguishes cards that are never charged from records that the outage delayed", () => {
    const silent = (offset: number, card: string) =>
      letter(offset, { exception: "GatewayDown", value: JSON.stringify({ id: `o-${offset}`, amount: 1, card }) })
    const deadLetters = [silent(1, "unreachable"), silent(2, "good"), silent(3, "cursed"), letter(4)]
    const { hopeless, outage } = account({ ...evidence, deadLetters }, nowhere)
    assert.deepStrictEqual({ hopeless, outage }, { hopeless: 2, outage: 1 })
  })

  it("counts records in a retry topic as waiting", () => {
    const retrying = [{ ...letter(2), topic: "orders.retry-1" }]
    const placed = new Set([...evidence.placed, "o-2"])
    const committed = new Map([[0, 3n]])
    const { waiting, lost, problems } = account(
      { ...evidence, placed, orders: [...evidence.orders, order(2)], retrying, committed },
      nowhere
    )
    assert.deepStrictEqual({ waiting, lost, problems }, { waiting: 1, lost: 0, problems: [] })
  })

  it("counts records behind the committed offset as waiting", () => {
    const { waiting, problems } = account(
      { ...evidence, placed: new Set([...evidence.placed, "o-2"]), orders: [...evidence.orders, order(2)] },
      nowhere
    )
    assert.deepStrictEqual({ waiting, problems }, { waiting: 1, problems: [] })
  })

  it.each<[string, Partial<Evidence>, RegExp]>([
    [
      "an order whose event never left the outbox",
      { placed: new Set(["o-0", "o-1", "o-2"]) },
      /o-2 was .* never published/
    ],
    [
      "an event of a transaction that rolled back",
      { placed: new Set(["o-0"]) },
      /o-1 was published and never committed/
    ],
    [
      "an event that was published twice",
      { orders: [order(0), order(1), order(2, "o-1")] },
      /o-1 was published 2 times/
    ],
    ["an order that was committed and left no trace", { payments: [] }, /orders-0-0 is lost/],
    ["an order that was paid twice", { payments: [payment(0), payment(0)] }, /orders-0-0: paid 2 times/],
    [
      "an order that was paid and dead-lettered",
      { deadLetters: [letter(0), letter(1)] },
      /orders-0-0: paid 1 times, dead/
    ],
    ["an order that was paid and will be delivered again", { committed: new Map() }, /committed: false/],
    [
      "a dead letter with other bytes",
      { deadLetters: [letter(1, { value: "other" })] },
      /orders-0-1: its dead letter has other/
    ],
    ["a payment for no order", { payments: [payment(0), payment(7)] }, /a payment for orders-0-7/]
  ])("has a problem with %s", (_, change, problem) => {
    assert.match(account({ ...evidence, ...change }, nowhere).problems.join("\n"), problem)
  })

  it("recognises a repetition after work was cut off", () => {
    const twice = { ...evidence, payments: [payment(0), payment(0)] }
    const { repeated, uncommitted, problems } = account(twice, new Set([0]))
    assert.deepStrictEqual({ repeated, uncommitted, problems }, { repeated: 1, uncommitted: 0, problems: [] })
  })

  it("counts records that are finished and not committed", () => {
    const { repeated, uncommitted } = account({ ...evidence, committed: new Map([[0, 1n]]) }, new Set([0]))
    assert.deepStrictEqual({ repeated, uncommitted }, { repeated: 0, uncommitted: 1 })
  })
})
