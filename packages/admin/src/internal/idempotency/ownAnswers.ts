/**
 * The requests with keys that this process knows: those that it works on, those that it has worked on, and the answers that no journal has.
 */

import { RequestJournal } from "@eventbus/core"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { Answer } from "./outcome.ts"

/** A request of this process. */
export interface Known {
  readonly fingerprint: string
  /** Succeeds when the work is over, with the answer; undefined when nothing was done. */
  readonly ended: Deferred.Deferred<Answer | undefined>
  /** The answer, where only this process has it. */
  readonly answer: Answer | undefined
  /** Whether this process works on it. */
  readonly isRunning: boolean
}

interface Kept extends Known {
  /** When it began, or ended, by the monotonic clock. */
  readonly sinceMillis: number
}

/** Most requests that a process knows beside those that it works on, and most characters of their answers. The oldest ones are forgotten first. */
const mostKnown = 10_000
const mostCharacters = 16_777_216

export interface OwnAnswers {
  /** The request with this id. */
  readonly find: (id: string) => Known | undefined
  /** Begins the work of a request that nobody works on. */
  readonly begin: (id: string, fingerprint: string) => Known
  /** Ends it. `answer` where only this process keeps it. */
  readonly end: (id: string, known: Known, answer: Answer | undefined) => void
  /** Ends it: nothing was done. */
  readonly forget: (id: string) => void
}

export const make: Effect.Effect<OwnAnswers> = Effect.map(Clock.Clock, (clock) => {
  // In the order of their ends, but for those that still run.
  const all = new Map<string, Kept>()
  let characters = 0
  const nowMillis = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  const lengthOf = ({ answer }: Known) => answer?.body.length ?? 0

  const forget = (id: string) => {
    const known = all.get(id)
    if (known === undefined) return
    characters -= lengthOf(known)
    all.delete(id)
  }
  const put = (id: string, known: Kept) => {
    forget(id)
    characters += lengthOf(known)
    all.set(id, known)
  }
  const isOver = ({ isRunning, sinceMillis }: Kept) =>
    !isRunning && nowMillis() - sinceMillis >= RequestJournal.keptMillis
  const trim = () => {
    for (const [id, known] of all) {
      if (known.isRunning) continue
      const isCrowded = all.size > mostKnown || characters > mostCharacters
      if (!isCrowded && !isOver(known)) return
      forget(id)
    }
  }
  return {
    find: (id) => {
      const known = all.get(id)
      if (known === undefined || !isOver(known)) return known
      forget(id)
      return undefined
    },
    begin: (id, fingerprint) => {
      const ended = Deferred.makeUnsafe<Answer | undefined>()
      const known = { fingerprint, ended, answer: undefined, sinceMillis: nowMillis(), isRunning: true }
      put(id, known)
      return known
    },
    end: (id, { fingerprint, ended }, answer) => {
      put(id, { fingerprint, ended, answer, sinceMillis: nowMillis(), isRunning: false })
      trim()
    },
    forget
  }
})
