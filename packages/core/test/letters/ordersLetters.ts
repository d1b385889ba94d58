/** Dead letters in `orders.DLT` of group `billing`, as a connector writes them, and the commands on them. */
import { Binding, type Broker, type EventBusError, type Replay, RetryPolicy, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

export interface Sketch {
  readonly value?: string | Uint8Array | null
  readonly key?: string | null
  /** When it was dead-lettered. Default 1000. */
  readonly millis?: number
  /** Undefined for a dead letter of an older release. */
  readonly fingerprint?: string | undefined
  readonly exceptionClass?: string
  readonly message?: string
  readonly stack?: string
  readonly replays?: number
  readonly owner?: string
  readonly originalTopic?: string
}

export const letter = (sketch: Sketch) => {
  const { value = "paid", key = "k", millis = 1_000, exceptionClass = "Down", message = "" } = sketch
  const { replays = 0, owner = "billing", originalTopic = "orders", stack, fingerprint } = sketch
  const headers = {
    "x-eventbus-original-topic": originalTopic,
    "x-eventbus-original-partition": "0",
    "x-eventbus-original-offset": "7",
    "x-eventbus-original-timestamp": "5",
    "x-eventbus-dlt-reason": "RETRIES_EXHAUSTED",
    "x-eventbus-dlt-timestamp": String(millis),
    "x-eventbus-last-exception-class": exceptionClass,
    "x-eventbus-last-exception-message": message,
    ...(stack === undefined ? {} : { "x-eventbus-last-exception-stacktrace": stack }),
    ...(fingerprint === undefined ? {} : { "x-eventbus-last-exception-fingerprint": fingerprint }),
    "x-eventbus-replay-count": String(replays),
    "x-eventbus-copy-owner": `orders.DLT/${owner}`
  }
  return {
    key: key === null ? null : bytes(key),
    value: typeof value === "string" ? bytes(value) : value,
    headers: Object.entries(headers).map(([name, text]) => ({ key: name, value: bytes(text) }))
  }
}

/** Topics `orders` and `orders.DLT`, with these dead letters by partition. */
export const store = Effect.fnUntraced(function* (...partitions: ReadonlyArray<ReadonlyArray<Sketch>>) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions: partitions.length })
  yield* memory.createTopic("orders.DLT", { partitions: partitions.length })
  for (const [partition, sketches] of partitions.entries()) {
    yield* memory.append("orders.DLT", partition, sketches.map(letter))
  }
  return memory
})

export const orders = { topic: "orders", groupId: "billing", value: Serde.string, retry: RetryPolicy.none } as const

/** The commands on the dead letters of a binding that does not run. */
export const commands: Effect.Effect<Replay.DeadLetters, EventBusError.UnknownCluster, Broker.Broker> =
  Binding.deadLetters(Binding.make("orders", { ...orders, handler: () => Effect.void }))
