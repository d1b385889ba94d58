/**
 * Makes the retry topics of bindings that start at the same time with few requests: most of what a topic costs a cluster when many ask for theirs at once is the asking.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Admin, Broker, NewTopic } from "../../Broker.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Sources from "../settings/sources.ts"
import * as DerivedTopic from "./derivedTopic.ts"

/** Creates the missing retry topics of a binding, so that they can be read from the start. A topic that cannot be created now is created when it is needed. */
export type Prepare = (definition: BindingDefinition<unknown>) => Effect.Effect<void>

/** Brokers refuse requests of many thousand partitions. */
const partitionsOfOneRequest = 1_000

/** How many source topics a cluster is asked about at a time. */
const sourcesAtOnce = 8

/** A source that has no leader is no reason for others to wait. */
const sourceMillis = 3_000

/** A binding waits once for each topic that it reads. */
interface Waiting {
  readonly definition: BindingDefinition<unknown>
  readonly ready: Deferred.Deferred<void>
}

/** Remembers clusters until it is forgotten itself. Rounds run in the scope, side by side. */
export const perCluster = (scope: Scope.Scope): ((broker: Broker["Service"]) => Prepare) => {
  const preparations = new Map<Broker["Service"], Prepare>()
  return (broker) => {
    const prepare = preparations.get(broker) ?? ofCluster(broker, scope)
    preparations.set(broker, prepare)
    return prepare
  }
}

/** A binding that comes while the client connects and lists the topics takes part in the same round. */
const ofCluster = (broker: Broker["Service"], scope: Scope.Scope): Prepare => {
  let joinable: Array<Waiting> | undefined

  const run = (round: Array<Waiting>) => {
    const end = Effect.suspend(() => {
      if (joinable === round) joinable = undefined
      return release(round)
    })
    return Effect.gen(function* () {
      const admin = yield* broker.admin
      const existing = new Set(yield* admin.listTopics)
      joinable = undefined
      yield* createMissing(admin, round, existing)
    }).pipe(Effect.scoped, Effect.ignore, Effect.ensuring(end))
  }

  const join = (waiting: Waiting): Effect.Effect<void> => {
    if (joinable !== undefined) {
      joinable.push(waiting)
      return Effect.void
    }
    joinable = [waiting]
    return Effect.asVoid(Effect.forkIn(run(joinable), scope))
  }

  return (definition) =>
    Effect.suspend(() => {
      if (definition.missingTopics !== "create") return Effect.void
      const waiting = Sources.of(definition).map((source) => ({
        definition: source,
        ready: Deferred.makeUnsafe<void>()
      }))
      return Effect.andThen(
        Effect.forEach(waiting, join, { discard: true }),
        Effect.forEach(waiting, ({ ready }) => Deferred.await(ready), { discard: true })
      )
    })
}

const release = (waiting: ReadonlyArray<Waiting>): Effect.Effect<void> =>
  Effect.sync(() => {
    for (const { ready } of waiting) Deferred.doneUnsafe(ready, Effect.void)
  })

/** Lets go on who has its topics, also those for whom none could be made. */
const createMissing = Effect.fnUntraced(function* (
  admin: Admin,
  round: ReadonlyArray<Waiting>,
  existing: ReadonlySet<string>
) {
  const lacks = ({ definition }: Waiting) => definition.tiers.topics.some(({ topic }) => !existing.has(topic))
  yield* release(round.filter((waiting) => !lacks(waiting)))
  const lacking = round.filter(lacks)
  const models = yield* modelsOf(admin, new Set(lacking.map(({ definition }) => definition.topic)))
  yield* Effect.forEach(
    requestsOf(lacking, models, existing),
    ({ waiting, topics }) => Effect.andThen(Effect.ignore(admin.createTopics(topics)), release(waiting)),
    { discard: true }
  )
})

interface Request {
  readonly waiting: Array<Waiting>
  readonly topics: Array<NewTopic>
  partitions: number
}

/** All topics of a binding are in one request. */
const requestsOf = (
  lacking: ReadonlyArray<Waiting>,
  models: ReadonlyMap<string, DerivedTopic.Model>,
  existing: ReadonlySet<string>
): ReadonlyArray<Request> => {
  const known = new Set(existing)
  const requests: Array<Request> = []
  for (const waiting of lacking) {
    const { definition } = waiting
    const model = models.get(definition.topic)
    if (model === undefined) continue
    // Bindings of one group share their topics.
    const missing = definition.tiers.topics.filter(({ topic }) => !known.has(topic) && known.add(topic))
    const topics = missing.map(({ topic }) => DerivedTopic.like(model, definition, topic))
    const partitions = topics.reduce((sum, each) => sum + (each.partitions ?? 1), 0)
    const last = requests.at(-1)
    if (last === undefined || last.partitions + partitions > partitionsOfOneRequest) {
      requests.push({ waiting: [waiting], topics, partitions })
    } else {
      last.waiting.push(waiting)
      last.topics.push(...topics)
      last.partitions += partitions
    }
  }
  return requests
}

/** Of the sources that are there: of another one nothing can be read, let alone retried. */
const modelsOf = (admin: Admin, sources: Iterable<string>): Effect.Effect<ReadonlyMap<string, DerivedTopic.Model>> =>
  Effect.map(
    Effect.forEach(
      sources,
      (source) =>
        DerivedTopic.model(admin, source).pipe(
          Effect.timeout(sourceMillis),
          Effect.match({ onSuccess: (model) => [[source, model] as const], onFailure: () => [] })
        ),
      { concurrency: sourcesAtOnce }
    ),
    (models) => new Map(models.flat())
  )
