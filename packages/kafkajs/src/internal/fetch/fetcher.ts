/**
 * Fetches for one session: a loop per node, each with one request out. A loop hands chunks over and never waits for their handling;
 * what it may fetch is what `Ownership` says at that moment.
 */
import { type Broker, ConsumerRecord } from "@eventbus/core"
import { Effect, Latch, type Scope } from "effect"
import type { Cluster } from "../connection/cluster.ts"
import type { Owned, Ownership } from "../group/ownership.ts"
import { byTopic, earliest, type Isolation, isolationLevel, latest, listOffsets } from "../offsets/logBounds.ts"
import type { FetchedPartition, TopicMetadata } from "../wire/apis.ts"
import { type ClientFailure, check, failureOfCode, Local } from "../wire/errors.ts"
import { call } from "../wire/wire.ts"
import { decodeFetch, visibleRecords } from "./fetchResponse.ts"
import { fetchWaitMillis } from "./fetchWait.ts"

export interface FetcherOptions {
  readonly topics: ReadonlyArray<string>
  readonly maxWaitMillis: number
  readonly maxBytesOf: (topic: string) => number
  readonly isolation: Isolation
}

export interface Fetcher {
  /** Looks at the topics anew: leaders, and with them the loops that run. */
  readonly refresh: Effect.Effect<ReadonlyMap<string, TopicMetadata>, ClientFailure>
  /** Something may be fetched that could not be before. */
  readonly wake: () => void
}

/** `fetch.max.bytes`: bounds what one answer decodes at once. */
const maxBytesPerFetch = 10 * 1024 * 1024
/** With very many partitions: less than this would cost more requests than it saves memory. */
const minBytesPerPartition = 64 * 1024
const retryDelay = "100 millis"

/** What was asked of a partition, to recognise an answer that is void by now. */
interface Asked {
  readonly owned: Owned
  readonly position: bigint
  readonly seeks: number
}

const fetchRequest = (
  options: FetcherOptions,
  ownership: Ownership,
  wanted: ReadonlyArray<Asked>,
  maxWaitTime: number
) => {
  // A chunk may arrive for every partition after it was paused: together they stay within one answer.
  const share = Math.max(minBytesPerPartition, Math.floor(maxBytesPerFetch / Math.max(1, ownership.busy())))
  return {
    maxWaitTime,
    minBytes: 1,
    maxBytes: maxBytesPerFetch,
    isolationLevel: isolationLevel(options.isolation),
    topics: byTopic(
      wanted.map(({ owned, position }) => ({ topic: owned.topic, partition: owned.partition, position })),
      ({ topic, partition, position }) => ({
        partition,
        fetchOffset: String(position),
        maxBytes: Math.min(options.maxBytesOf(topic), share)
      })
    )
  }
}

const fatal = new Set([
  Local.authentication as string,
  Local.tls,
  Local.client,
  "TOPIC_AUTHORIZATION_FAILED",
  "GROUP_AUTHORIZATION_FAILED"
])

/** Failures that a new look at the leaders, and time, cure: all that are not fatal. */
export const isFatal = (failed: ClientFailure): boolean => fatal.has(failed.type)

export const makeFetcher = (
  cluster: Cluster,
  options: FetcherOptions,
  ownership: Ownership,
  scope: Scope.Scope,
  emit: (event: Broker.ConsumerEvent) => void,
  die: (failed: ClientFailure, topic: string) => Effect.Effect<void>,
  /** The topic was deleted. If there is one of its name again, positions of the old one mean nothing in it. */
  deleted: (topic: string) => void
): Fetcher => {
  const loops = new Map<number, Latch.Latch>()
  const leaders = new Map<string, number>()
  let rotation = 0

  const leaderOf = ({ topic, partition }: ConsumerRecord.TopicPartition) =>
    leaders.get(ConsumerRecord.partitionKey(topic, partition))
  const valid = (asked: Asked) =>
    ownership.holds(asked.owned) && asked.owned.phase === "fetching" && asked.owned.seeks === asked.seeks

  /** Partitions take turns at the front: a node fills its answer from there. */
  const next = (node: number): ReadonlyArray<Asked> => {
    const wanted = ownership.fetchable().filter((owned) => leaderOf(owned) === node)
    const first = wanted.length === 0 ? 0 : rotation++ % wanted.length
    return [...wanted.slice(first), ...wanted.slice(0, first)].map((owned) => ({
      owned,
      position: owned.position,
      seeks: owned.seeks
    }))
  }

  const outOfRange = Effect.fnUntraced(function* (asked: Asked) {
    const { topic, partition } = asked.owned
    const metadata = yield* cluster.metadata([topic])
    const [starts, ends] = yield* Effect.all(
      [earliest, latest].map((at) => listOffsets(cluster, metadata, [asked.owned], at, options.isolation)),
      { concurrency: "unbounded" }
    )
    const key = ConsumerRecord.partitionKey(topic, partition)
    const logStart = starts?.get(key)
    const logEnd = ends?.get(key)
    if (!valid(asked) || logStart === undefined || logEnd === undefined) return
    // a new leader may not know yet that the position is committed
    if (asked.position >= logStart && asked.position <= logEnd) return
    asked.owned.phase = "waiting"
    emit({
      _tag: "OutOfRange",
      generation: asked.owned.generation,
      topic,
      partition,
      position: asked.position,
      logStart,
      logEnd
    })
  })

  const deliver = async (asked: Asked, fetched: FetchedPartition): Promise<void> => {
    const { records, nextOffset, bytes } = await visibleRecords(fetched, asked.position, options.isolation)
    if (!valid(asked)) return
    asked.owned.idle = nextOffset === asked.position
    if (asked.owned.idle) return
    asked.owned.position = nextOffset
    emit({
      _tag: "Fetched",
      chunk: {
        topic: fetched.topic,
        partition: fetched.partition,
        generation: asked.owned.generation,
        records,
        nextOffset,
        highWatermark: options.isolation === "read_committed" ? fetched.lastStableOffset : fetched.highWatermark,
        bytes
      }
    })
  }

  /** Handles one partition's answer; succeeds with what went wrong, when that needs a new look at the leaders. */
  const handle = Effect.fnUntraced(function* (asked: Asked, fetched: FetchedPartition) {
    const failed = failureOfCode(fetched.errorCode)
    if (failed === undefined) {
      yield* Effect.tryPromise({
        try: () => deliver(asked, fetched),
        catch: (thrown): ClientFailure => ({ _tag: "ClientFailure", type: Local.client, detail: String(thrown) })
      })
      asked.owned.answered = true
      return undefined
    }
    if (failed.type === "UNKNOWN_TOPIC_OR_PARTITION" && asked.owned.answered) deleted(asked.owned.topic)
    if (failed.type !== "OFFSET_OUT_OF_RANGE")
      return yield* isFatal(failed) ? Effect.fail(failed) : Effect.succeed(failed)
    yield* outOfRange(asked)
    return failed
  })

  const fetchOnce = Effect.fnUntraced(function* (node: number, wanted: ReadonlyArray<Asked>) {
    const broker = yield* cluster.node(node)
    // A leader that is not known yet may be this node.
    const here = ownership.all().filter((owned) => (leaderOf(owned) ?? node) === node)
    const wait = fetchWaitMillis(here, options.maxWaitMillis, performance.now())
    const answer = yield* call(broker, "Fetch", fetchRequest(options, ownership, wanted, wait), {
      decode: decodeFetch
    })
    yield* check(answer.errorCode)
    const asked = new Map(wanted.map((one) => [ConsumerRecord.partitionKey(one.owned.topic, one.owned.partition), one]))
    let failed: ClientFailure | undefined
    for (const fetched of answer.partitions) {
      const one = asked.get(ConsumerRecord.partitionKey(fetched.topic, fetched.partition))
      if (one === undefined || !valid(one)) continue
      failed =
        (yield* handle(one, fetched).pipe(
          Effect.catch((failed) =>
            isFatal(failed) ? Effect.as(die(failed, fetched.topic), failed) : Effect.succeed(failed)
          )
        )) ?? failed
    }
    if (failed !== undefined) return yield* Effect.fail(failed)
  })

  const loop = (node: number, latch: Latch.Latch): Effect.Effect<never> =>
    Effect.forever(
      Effect.suspend(() => {
        const wanted = next(node)
        if (wanted.length === 0) {
          latch.closeUnsafe()
          return latch.await
        }
        return fetchOnce(node, wanted).pipe(
          Effect.catch((failed) =>
            isFatal(failed)
              ? die(failed, wanted[0]!.owned.topic)
              : Effect.sleep(retryDelay).pipe(Effect.andThen(Effect.ignore(refresh)))
          )
        )
      })
    )

  const wake = () => {
    for (const latch of loops.values()) latch.openUnsafe()
  }

  const refresh: Fetcher["refresh"] = Effect.gen(function* () {
    const metadata = yield* cluster.metadata(options.topics)
    for (const { topic, partitionMetadata } of metadata.values()) {
      for (const { partitionId, leader } of partitionMetadata) {
        leaders.set(ConsumerRecord.partitionKey(topic, partitionId), leader)
      }
    }
    for (const node of new Set(leaders.values())) {
      if (node < 0 || loops.has(node)) continue
      const latch = Latch.makeUnsafe(false)
      loops.set(node, latch)
      yield* Effect.forkIn(loop(node, latch), scope)
    }
    wake()
    return metadata
  })

  return { refresh, wake }
}
