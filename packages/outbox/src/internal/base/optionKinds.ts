/** The kinds of the options of the outbox, each once: of what a part takes, and of what the shapes hand on to it. `Ranges` has those that are numbers. */
import { Kinds, type Ranges } from "@eventbus/core"
import * as OutboxRanges from "../../OutboxRanges.ts"

type Table = Readonly<Record<string, Kinds.Kind | Ranges.Range>>

/** Text of 1 to `longest` characters that every database stores as it is. */
const text = (longest: number): Kinds.Kind =>
  Kinds.make(
    `1 to ${longest} characters`,
    (value) => Kinds.nameProblem(value) === undefined && (value as string).length <= longest
  )

/** The name of a node, to which the outbox adds what makes it unique. */
const nodeName = text(100)

/** A name or an object with a name, as events and aggregates have them. */
export const typeName: Kinds.Kind = (path, found) =>
  typeof found === "string"
    ? typeText(path, found)
    : Kinds.struct({}, { name: typeText }, "a name, or an object with a `name`")(path, found)

const typeText = Kinds.make("a text that is not empty", (value) => typeof value === "string" && value !== "")

const interceptors = Kinds.listOf(
  Kinds.struct(
    { beforeDispatch: Kinds.func, afterDispatch: Kinds.func },
    {},
    "an interceptor: an object with `beforeDispatch`, `afterDispatch` or both"
  ),
  "a list of interceptors"
)

const codec: Kinds.Kind = Kinds.struct(
  {},
  { toJson: Kinds.func, parseObject: Kinds.func },
  "a codec: an object with the functions `toJson` and `parseObject`"
)

const hook: Kinds.Kind = Kinds.struct(
  { beforeWrite: Kinds.func, afterWrite: Kinds.func, afterCommit: Kinds.func, afterRollback: Kinds.func },
  {},
  "an object with hooks"
)

const { retention, batchSize, interval, batchTimeout } = OutboxRanges.purge

/** Options of `PurgeScheduler`. */
export const purge: Table = { retention, batchSize, interval, batchTimeout }

/** Options of `OutboxStore`. Its table name is checked as a name of the database, too. */
export const store: Table = { table: Kinds.string, codec, onDone: Kinds.oneOf(["keep", "delete"]) }

/** Options of `OutboxWriter`. */
export const writer: Table = { hook, claimedBy: text(128) }

/** Options of a writer to transactions of other clients, beside `dialect`, which is required. */
export const foreignWriter: Table = { table: Kinds.string, codec, notify: Kinds.flag }

/** The databases of such a writer. */
export const foreignDialect: Kinds.Kind = Kinds.oneOf(["pg", "mysql"])

/** The claims of a part, and how long they last. */
const claimLocking = Kinds.struct({}, { owner: text(128), lockTimeout: OutboxRanges.claims.lockTimeout })

/** Options of `OutboxDispatcher`. */
export const dispatcher: Table = {
  ...OutboxRanges.dispatcher,
  claimLocking,
  interceptors,
  retryPolicy: Kinds.func,
  inFlightTracker: Kinds.struct(
    {},
    { tryAcquire: Kinds.func, release: Kinds.func },
    "a tracker: an object with the functions `tryAcquire` and `release`"
  ),
  onRetryScheduled: Kinds.func
}

/** Options of `OutboxPoller`. */
export const poller: Table = { ...OutboxRanges.poller, claimLocking }

export const pollerHandler: Kinds.Kind = Kinds.struct(
  { availableCapacity: Kinds.func, awaitCapacity: Kinds.effect, whilePolling: Kinds.func },
  { handle: Kinds.func },
  "an object with the function `handle`"
)

const leases = Kinds.struct({}, { lease: OutboxRanges.claims.lease, owner: text(120) })
const afterFailure = Kinds.oneOf(["hold", "passOver"])

/** Options of `OrderedRelay`. */
export const relay: Table = {
  ...OutboxRanges.relay,
  leases: (path, found) => (found === "none" ? [] : leases(path, found)),
  retryPolicy: Kinds.func,
  afterFailure,
  interceptors,
  codec
}

/** An option of a shape that the part checks, to which the shape hands it on. */
const ofPart: Kinds.Kind = () => []

const ofParts = (names: string): Table => Object.fromEntries(names.split(" ").map((name) => [name, ofPart]))

const common: Table = {
  ...store,
  ...ofParts("interval batchSize drainTimeout listenerTimeout"),
  interceptors,
  purge: Kinds.struct(purge)
}

const single: Table = {
  ...common,
  ...ofParts("workerCount hotQueueCapacity coldQueueCapacity maxAttempts skipRecent"),
  retryPolicy: Kinds.func,
  hook
}

/** Options of the shapes of `Outbox`: everything that a shape takes, by its name. */
export const shapes = {
  singleNode: single,
  multiNode: {
    ...single,
    claimLocking: Kinds.struct({ owner: nodeName }, { lockTimeout: OutboxRanges.claims.lockTimeout })
  },
  ordered: common,
  orderedNodes: {
    ...common,
    ...ofParts("workerCount maxAttempts maxInMemory pipelining"),
    retryPolicy: Kinds.func,
    afterFailure,
    leases: Kinds.struct({ owner: nodeName, lease: OutboxRanges.claims.lease })
  },
  writerOnly: {
    ...store,
    purge: Kinds.struct({ ...purge, by: Kinds.oneOf(["terminal", "age"]) })
  }
} as const satisfies Readonly<Record<string, Table>>
