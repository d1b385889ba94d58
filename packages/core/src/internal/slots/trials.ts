/**
 * The trial calls of a half-open breaker: which record may make one, and what a failed one leads to (ruling 72).
 *
 * A window is one half-open state. A partition or key lane has one candidate at a time, and a record is tried once in a window. Records that were never tried come
 * first. The others wait until the candidates of all partitions can be there, and those go first that were tried longest ago: a record that fails for ever does not
 * keep the others from their trial. A failed trial leaves its record where it is. The breaker judges the outcomes that it has when no candidate is left.
 */
import type * as CircuitBreaker from "../../CircuitBreaker.ts"
import type { ConsumerRecord, RecordPosition } from "../../ConsumerRecord.ts"
import type { OnlyCandidate, Trials as Snapshot } from "../../Snapshot.ts"

/** A record that waits for the breaker. */
export interface Candidate {
  readonly record: ConsumerRecord | undefined
  readonly wake: () => void
}

/** A record that was tried. */
interface Tried {
  /** The last window in which it was tried; -1 when that came to no outcome. */
  lastWindow: number
  /** In how many windows its trial failed while the trial of another record succeeded. */
  failedWindows: number
  /** Since when it has been the only candidate. */
  aloneSinceMillis: number | undefined
}

export interface TrialOptions {
  /** A record whose trials failed in so many windows, in which the trial of another record succeeded, takes its route. */
  readonly maxAttempts: number
  /** So long the only candidate fails before it takes its route. */
  readonly giveUpAfterMillis: number
  /** Calls back once the candidates of all partitions can be there. */
  readonly onGathered: (gathered: () => void) => void
  readonly nowMillis: () => number
}

export class Trials {
  readonly #breaker: CircuitBreaker.CircuitBreaker
  readonly #options: TrialOptions
  /** A record that is fetched again, as after a rebalance, is another object and counts from zero. */
  readonly #tried = new WeakMap<ConsumerRecord, Tried>()
  readonly #waiting = new Set<Candidate>()
  /** Records that are chosen for a trial and have not taken their permit yet. */
  readonly #chosen = new Set<ConsumerRecord>()
  #window = -1
  #hasBegun = false
  #isGathered = false
  #running = 0
  #successes = 0
  #failed = new Set<ConsumerRecord>()
  #only: OnlyCandidate | undefined = undefined

  constructor(breaker: CircuitBreaker.CircuitBreaker, options: TrialOptions) {
    this.#breaker = breaker
    this.#options = options
  }

  /** Whether a permit is one for a trial. */
  isTrial(permit: CircuitBreaker.Permit): boolean {
    return permit === this.#window
  }

  /** The breaker has changed its state. All that wait for it look again. */
  onChange({ to, snapshot }: CircuitBreaker.Change): void {
    this.#endWindow()
    if (to === "CLOSED") this.#only = undefined
    if (to === "HALF_OPEN") this.#window = snapshot.generation
    // A candidate that is called may wait again at once: the set changes while this runs.
    for (const { wake } of Array.from(this.#waiting)) wake()
  }

  #endWindow(): void {
    const [first, ...more] = this.#failed
    for (const record of this.#failed) {
      const tried = this.#tried.get(record)
      if (tried !== undefined && this.#successes > 0) tried.failedWindows++
    }
    if (first !== undefined) this.#only = more.length === 0 ? this.#onlyCandidate(first) : undefined
    this.#chosen.clear()
    this.#failed = new Set()
    this.#hasBegun = this.#isGathered = false
    this.#running = this.#successes = 0
  }

  #onlyCandidate(record: ConsumerRecord): OnlyCandidate | undefined {
    const sinceMillis = this.#tried.get(record)?.aloneSinceMillis
    if (this.#successes > 0 || sinceMillis === undefined) return undefined
    const { topic, partition, offset } = record
    return { topic, partition, offset, sinceMillis }
  }

  /** While half-open: whether the record may take a permit now. A free permit may be meant for a record that is chosen. */
  mayTry(record: ConsumerRecord): boolean {
    if (this.#chosen.has(record)) return true
    const isNew = (this.#tried.get(record)?.lastWindow ?? -1) === -1
    return isNew && this.#breaker.freePermitsUnsafe() > this.#chosen.size
  }

  /** The record has taken a permit. */
  begin(record: ConsumerRecord): void {
    const tried = this.#tried.get(record)
    if (tried === undefined) {
      this.#tried.set(record, { lastWindow: this.#window, failedWindows: 0, aloneSinceMillis: undefined })
    } else tried.lastWindow = this.#window
    this.#chosen.delete(record)
    this.#running++
    this.#gather()
  }

  /** The call of the record is over. Comes before the breaker hears of it, which may end the window; `next` comes after that. */
  end(record: ConsumerRecord, permit: CircuitBreaker.Permit, outcome: string): void {
    const tried = this.#tried.get(record)
    if (outcome === "success") this.#tried.delete(record)
    else if (outcome !== "failure" && tried !== undefined) tried.lastWindow = -1
    if (permit !== this.#window || !this.#isHalfOpen()) return
    this.#running--
    if (outcome === "success") this.#successes++
    if (outcome === "failure") this.#failed.add(record)
  }

  /** Whether a record whose trial has just failed stays where it is. Otherwise it takes its route. Comes before `end`. */
  staysInPlace(record: ConsumerRecord): boolean {
    const tried = this.#tried.get(record)
    if (tried === undefined) return true
    const nowMillis = this.#options.nowMillis()
    if (this.#isAlone(record)) tried.aloneSinceMillis ??= nowMillis
    else tried.aloneSinceMillis = undefined
    const windows = tried.failedWindows + (this.#successes > 0 ? 1 : 0)
    const aloneMillis = tried.aloneSinceMillis === undefined ? -1 : nowMillis - tried.aloneSinceMillis
    if (windows < this.#options.maxAttempts && aloneMillis < this.#options.giveUpAfterMillis) return true
    this.#tried.delete(record)
    return false
  }

  /** Whether no other record was tried in this window, or waits for its trial. */
  #isAlone(record: ConsumerRecord): boolean {
    if (this.#running > 1 || this.#successes > 0) return false
    for (const failed of this.#failed) if (failed !== record) return false
    for (const candidate of this.#waiting) if (candidate.record !== record) return false
    return this.#chosen.size === 0
  }

  /** Whether the record has made its trial, and no other state of the breaker has begun since in which it may be tried again, or be handled. */
  awaitsNextWindow(record: ConsumerRecord): boolean {
    const state = this.#breaker.stateUnsafe()
    if (state === "HALF_OPEN") return this.#tried.get(record)?.lastWindow === this.#window
    return state === "OPEN" || state === "FORCED_OPEN"
  }

  /** An operator has decided about the record: it is not tried again. */
  forget(record: ConsumerRecord): void {
    this.#tried.delete(record)
    this.#failed.delete(record)
    if (this.#only !== undefined && isSame(this.#only, record)) this.#only = undefined
  }

  add(candidate: Candidate): void {
    this.#waiting.add(candidate)
    if (candidate.record !== undefined) this.#chosen.delete(candidate.record)
    if (!this.#isHalfOpen()) return
    this.#gather()
    if (this.#isGathered) this.next()
  }

  /** The candidate was called. */
  leave(candidate: Candidate): void {
    this.#waiting.delete(candidate)
  }

  /** The candidate is not going to be tried. */
  remove(candidate: Candidate): void {
    if (this.#waiting.delete(candidate)) this.next()
  }

  /** The record cannot be tried now. */
  pass(record: ConsumerRecord | undefined): void {
    if (this.#chosen.size > 0 && record !== undefined && this.#chosen.delete(record)) this.next()
  }

  /** Chooses records for the free permits. When nobody is left to try, the breaker judges. */
  next(): void {
    if (!this.#isHalfOpen()) return
    const free = this.#breaker.freePermitsUnsafe() - this.#chosen.size
    if (free <= 0) return
    const ready: Array<readonly [lastWindow: number, candidate: Candidate, record: ConsumerRecord]> = []
    let left = 0
    for (const candidate of this.#waiting) {
      const { record } = candidate
      const lastWindow = (record === undefined ? undefined : this.#tried.get(record)?.lastWindow) ?? -1
      if (record === undefined || lastWindow === this.#window || this.#chosen.has(record)) continue
      left++
      if (lastWindow === -1 || this.#isGathered) ready.push([lastWindow, candidate, record])
    }
    if (ready.length > 0) {
      ready.sort(([a], [b]) => a - b)
      const chosen = ready.slice(0, free)
      for (const [, , record] of chosen) this.#chosen.add(record)
      for (const [, { wake }] of chosen) wake()
    }
    if (this.#isGathered && left === 0 && this.#chosen.size === 0) this.#breaker.judgeUnsafe(this.#options.nowMillis())
  }

  /** The first candidate of a window begins the time in which those of other partitions come. */
  #gather(): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    const window = this.#window
    this.#options.onGathered(() => {
      if (this.#window !== window || !this.#hasBegun) return
      this.#isGathered = true
      this.next()
    })
  }

  #isHalfOpen(): boolean {
    return this.#breaker.stateUnsafe() === "HALF_OPEN"
  }

  look(): Snapshot {
    return { candidates: this.#waiting.size + this.#chosen.size + this.#running, only: this.#only }
  }
}

const isSame = (a: RecordPosition, b: RecordPosition): boolean =>
  a.topic === b.topic && a.partition === b.partition && a.offset === b.offset
