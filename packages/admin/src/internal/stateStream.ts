/**
 * The states of all bindings as a stream of events: one at once, and another one whenever something has changed.
 */
import { createHash } from "node:crypto"
import { Clock, Effect, Stream } from "effect"
import type * as Answers from "../Answers.ts"
import type { EventBusAdmin } from "../EventBusAdmin.ts"

/** How often the state is looked at. Looking asks no broker. */
const interval = "1 second"

/** Longest time without an event, so that proxies and callers know that the stream lives. */
const heartbeatMillis = 15_000

/** How long a stream lives. The authorizer decides anew about the caller of the next one. */
const lifetimeMillis = 5 * 60_000

/** The last event. */
interface Sent {
  readonly id: string
  readonly atMillis: number
}

/** `lastId` names the state that the caller has. The stream ends after five minutes, and once the program closes, so that no caller holds up a server that stops. */
export const make = (
  { list, health }: Pick<EventBusAdmin["Service"], "list" | "health">,
  lastId: string | undefined
): Stream.Stream<Answers.StreamEvent> => {
  const current = Effect.map(Effect.all({ bindings: list, health }), (state) => ({ state, id: idOf(state) }))

  const next = Effect.fnUntraced(function* (sent: Sent): Effect.fn.Return<readonly [Answers.StreamEvent, Sent]> {
    for (;;) {
      yield* Effect.sleep(interval)
      const { state, id } = yield* current
      const atMillis = yield* Clock.currentTimeMillis
      if (id !== sent.id)
        return [
          { id, event: "state", data: state },
          { id, atMillis }
        ]
      if (atMillis - sent.atMillis >= heartbeatMillis)
        return [
          { event: "heartbeat", data: null },
          { id, atMillis }
        ]
    }
  })

  const streamed = Effect.gen(function* () {
    const { state, id } = yield* current
    const atMillis = yield* Clock.currentTimeMillis
    const first: Answers.StreamEvent =
      id === lastId ? { event: "heartbeat", data: null } : { id, event: "state", data: state }
    if (isClosing(state)) return Stream.succeed(first)
    return Stream.concat(
      Stream.succeed(first),
      Stream.unfold<Sent, Answers.StreamEvent, never, never>({ id, atMillis }, next)
    )
  })
  return Stream.unwrap(streamed).pipe(
    Stream.takeUntil(({ data }) => data !== null && isClosing(data)),
    Stream.interruptWhen(Effect.sleep(lifetimeMillis))
  )
}

const idOf = (state: Answers.State): string =>
  createHash("sha256").update(JSON.stringify(state)).digest("hex").slice(0, 16)

const isClosing = ({ health }: Answers.State): boolean => health.reasons.some(({ reason }) => reason === "Closing")
