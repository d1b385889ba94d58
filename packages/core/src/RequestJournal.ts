/**
 * Does the work of a request once, whichever process of a group gets it again: claims and answers stand in the journal of a binding's replays, `{dead letter topic}.replays`,
 * for 24 hours. The admin API keeps its idempotency keys there.
 *
 * The claim is written before the work, and the answer behind it. A process that is killed between the two leaves a claim without an answer: nobody does the work a second
 * time, and nobody knows whether it was done.
 */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { BrokerError } from "./BrokerError.ts"

/** Claims and answers are kept for so long, counted from their last entry by the times of the journal, in milliseconds. */
export const keptMillis = 86_400_000

/** A request. */
export interface Request {
  /** Names the request, and who asked: 64 hexadecimal digits. Requests of one id are one request. */
  readonly id: string
  /** Tells the content of the request: 64 hexadecimal digits. */
  readonly fingerprint: string
}

/** The answer to a request. */
export interface Answer {
  /** The status of HTTP, 200 to 599. */
  readonly status: number
  /** The body, JSON. */
  readonly body: string
}

/** The caller does the work, and then says how it ended. */
export interface Granted {
  readonly _tag: "Granted"
  /** Keeps the answer, for whoever asks again. */
  readonly keep: (answer: Answer) => Effect.Effect<void, BrokerError>
  /** Nothing was done: the next one who asks does the work. */
  readonly release: Effect.Effect<void, BrokerError>
}

/** Somebody was first. */
export interface Taken {
  readonly _tag: "Taken"
  /** The content of the first request. */
  readonly fingerprint: string
  /** The first answer. Undefined while the work goes on, and when its process ended before it could say how. */
  readonly answer: Answer | undefined
  /** The host of the first process. */
  readonly host: string
  /** The id of the first process. */
  readonly pid: number
  /** When the first process began, epoch milliseconds by the times of the journal. */
  readonly sinceMillis: number
}

/** The requests of one binding, on its cluster. */
export interface RequestJournal {
  /**
   * Claims the work of a request. Among processes that claim at once, the order in the journal decides. Makes the journal where there is a dead letter topic and no
   * journal. Fails where it cannot be written or read: then nothing is claimed, as far as anybody can know.
   */
  readonly claim: (request: Request) => Effect.Effect<Granted | Taken, BrokerError, Scope.Scope>
}
