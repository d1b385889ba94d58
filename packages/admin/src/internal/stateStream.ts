/**
 * The states of all bindings as a stream of events: one at once, and another one whenever something has changed.
 *
 * All open streams look in the same moment of each second, and share what the first of them finds: with many consoles open the program computes its state, and writes it as
 * text, once a second; with none it does not.
 */
import { createHash } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type * as Answers from "../Answers.ts"
import type { EventBusAdmin } from "../EventBusAdmin.ts"

/** How often the state is looked at. Looking asks no broker. */
const intervalMillis = 1_000

/** Longest time without an event, so that proxies and callers know that the stream lives. */
const heartbeatMillis = 15_000

/** How long a stream lives. The authorizer decides anew about the caller of the next one. */
const lifetimeMillis = 5 * 60_000

/** The state at one moment. */
interface Look {
  /** The name of the state. */
  readonly id: string
  /** The state as an event that every stream sends as it is. */
  readonly event: Uint8Array
  readonly isClosing: boolean
}

/** The last event. */
interface Sent {
  readonly look: Look
  readonly atMillis: number
}

/**
 * Makes a stream of bytes, in the form of `Answers.StreamEvent`, for a caller that has the state `lastId`. It ends after five minutes, and once the program closes, so that no
 * caller holds up a server that stops.
 */
export type Open = (lastId: string | undefined) => Stream.Stream<Uint8Array>

export const make = (admin: Pick<EventBusAdmin["Service"], "list" | "health">): Open => {
  const current = Effect.map(Effect.all({ bindings: admin.list, health: admin.health }), lookOf)
  const shared = oncePerInterval(current)

  const next = Effect.fnUntraced(function* (sent: Sent): Effect.fn.Return<readonly [Uint8Array, Sent] | undefined> {
    if (sent.look.isClosing) return undefined
    for (;;) {
      yield* Effect.sleep(intervalMillis - ((yield* Clock.currentTimeMillis) % intervalMillis))
      const look = yield* shared
      const atMillis = yield* Clock.currentTimeMillis
      if (look.id !== sent.look.id) return [look.event, { look, atMillis }]
      if (atMillis - sent.atMillis >= heartbeatMillis) return [heartbeat, { look, atMillis }]
    }
  })

  return (lastId) =>
    Stream.unwrap(
      Effect.gen(function* () {
        // The first event has to show a change that the caller has just made.
        const look = yield* current
        const atMillis = yield* Clock.currentTimeMillis
        return Stream.concat(
          Stream.succeed(look.id === lastId ? heartbeat : look.event),
          Stream.unfold<Sent, Uint8Array, never, never>({ look, atMillis }, next)
        )
      })
    ).pipe(Stream.interruptWhen(Effect.sleep(lifetimeMillis)))
}

/** Those who ask in the same interval of the clock get one answer. */
const oncePerInterval = <A>(ask: Effect.Effect<A>): Effect.Effect<A> => {
  let last: { readonly interval: number; readonly answer: Effect.Effect<A> } | undefined
  return Effect.gen(function* () {
    const interval = Math.floor((yield* Clock.currentTimeMillis) / intervalMillis)
    if (last?.interval !== interval) last = { interval, answer: yield* Effect.cached(ask) }
    return yield* last.answer
  })
}

const encoder = new TextEncoder()

const heartbeat = encoder.encode("event: heartbeat\ndata: null\n\n")

const lookOf = (state: Answers.State): Look => {
  const text = JSON.stringify(state)
  const id = createHash("sha256").update(text).digest("hex").slice(0, 16)
  return {
    id,
    event: encoder.encode(`id: ${id}\nevent: state\ndata: ${text}\n\n`),
    isClosing: state.health.reasons.some(({ reason }) => reason === "Closing")
  }
}
