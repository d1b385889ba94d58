/** Writes entries to the audit log, whose topic it creates when it is missing. Every wait has an end. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type { Broker, Producer } from "../../Broker.ts"
import { type BrokerError, RequestTimedOut } from "../../BrokerError.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import * as LogLine from "../base/logLine.ts"
import * as SingleFlight from "../base/singleFlight.ts"
import * as OwnTopic from "../publish/ownTopic.ts"
import * as Entries from "./auditEntries.ts"
import * as AuditTopic from "./auditTopic.ts"

/** Succeeds when the cluster has acknowledged the entry. */
export type Write = (entry: Entries.NewEntry) => Effect.Effect<void, BrokerError>

/** Nothing is connected before the first entry. The producer closes with the scope. */
export const make = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  topic: string,
  timeoutMillis: number
): Effect.fn.Return<Write, never, Scope.Scope> {
  const scope = yield* Effect.scope
  let producer: Producer | undefined

  const ensure = Effect.scoped(
    Effect.flatMap(broker.admin, (admin) => OwnTopic.createMissing(admin, AuditTopic.of(topic)))
  ).pipe(Effect.catch((error) => LogLine.warning(`The audit topic '${topic}' cannot be created: ${error.message}`)))
  const connect = SingleFlight.make(
    Effect.gen(function* () {
      yield* ensure
      producer = yield* broker.producer({ deliveryTimeout: timeoutMillis, closeTimeout: "1 second" })
      return producer
    }).pipe(Scope.provide(scope)),
    scope
  )
  const connected = Effect.suspend(() => (producer === undefined ? connect : Effect.succeed(producer)))

  return (entry) => {
    const record = { topic, partition: 0, key: Entries.keyOf(entry.id), value: Entries.encode(entry) }
    const send = Effect.flatMap(connected, ({ send }) => send(record))
    // The topic may have been deleted since.
    const sent = Effect.catchTag(send, "UnknownTopic", () => Effect.andThen(ensure, send))
    return Effect.flatMap(awaitAtMost(sent, timeoutMillis), (written) =>
      Option.isSome(written)
        ? Effect.void
        : Effect.fail(new RequestTimedOut({ operation: `Writing to topic '${topic}'`, millis: timeoutMillis }))
    )
  }
})
