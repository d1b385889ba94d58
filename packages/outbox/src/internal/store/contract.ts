/** What a store can do: the contract behind `OutboxStore`, and the values that it takes. */
import type { Duration, Effect } from "effect"
import type { EventEnvelope } from "../../EventEnvelope.ts"
import type { OutboxStoreError } from "../../OutboxError.ts"
import type { Dialect } from "./dialect.ts"
import type { InsertStatement } from "./insertStatement.ts"
import type { PolledEvent } from "./rows.ts"
import type { TableNames } from "./tableNames.ts"

/** Who may change a row's state: anybody, or only the holder of its claim or of its bucket (ruling 41). */
export type Fence =
  | { readonly _tag: "Open" }
  | { readonly _tag: "Claim"; readonly owner: string }
  | { readonly _tag: "Buckets"; readonly owner: string; readonly epochs: ReadonlyMap<number, number> }

export const openFence: Fence = { _tag: "Open" }

/** The place of a row in the order in which pending rows are read. */
export interface PollCursor {
  readonly availableAtMicros: number
  readonly seq: number
}

export interface PollOptions {
  /** Most rows, 1 or more. */
  readonly limit: number
  /** Leaves out rows that were created less than this ago. Default 0: none. */
  readonly skipRecent?: Duration.Input
}

export interface ClaimOptions extends PollOptions {
  /** Unique per running process, at most 128 characters. */
  readonly owner: string
  /** A claim older than this may be taken by another owner. */
  readonly lockTimeout: Duration.Input
}

export interface DeadFilter {
  readonly eventType?: string
  readonly aggregateType?: string
}

/** Pending rows: how many, and the age of the oldest that is due (0 when there is none). */
export interface Lag {
  readonly pending: number
  readonly dead: number
  readonly oldestMillis: number
}

type Stored<A> = Effect.Effect<A, OutboxStoreError>

export interface StoreShape {
  readonly dialect: Dialect
  readonly names: TableNames
  readonly onDone: "keep" | "delete"
  /** The insert of rows with status NEW as text and parameters, for a transaction that Effect does not own. */
  readonly insertStatements: (
    events: ReadonlyArray<EventEnvelope>,
    claimedBy?: string
  ) => ReadonlyArray<InsertStatement>
  /** Inserts rows with status NEW, in order, in the transaction of this fiber. `claimedBy` takes the claim with the insert. */
  readonly insertNew: (events: ReadonlyArray<EventEnvelope>, claimedBy?: string) => Stored<void>
  /**
   * DONE (or gone, with `onDone: "delete"`). Acts on NEW and RETRY rows only; returns how many changed. `places` says where the rows
   * were read, one for each id: PostgreSQL finds them there in half the time, and by their ids where one has moved.
   */
  readonly markDone: (
    eventIds: ReadonlyArray<string>,
    fence?: Fence,
    places?: ReadonlyArray<string | undefined>
  ) => Stored<number>
  /**
   * RETRY: attempts + 1, available again after the delay on the database's clock. With `attempts`, only a row that still has so many:
   * a mark whose answer got lost is repeated without counting twice.
   */
  readonly markRetry: (
    eventId: string,
    delay: Duration.Input,
    error: string,
    fence?: Fence,
    attempts?: number
  ) => Stored<number>
  /** DEAD, with the time of it. */
  readonly markDead: (eventId: string, error: string, fence?: Fence) => Stored<number>
  /** Due rows, oldest first, from behind a cursor. */
  readonly pollPending: (options: PollOptions & { readonly after?: PollCursor }) => Stored<ReadonlyArray<PolledEvent>>
  /** Due rows that nobody holds, taken for `owner`. Two claimers never get the same row. */
  readonly claimPending: (options: ClaimOptions) => Stored<ReadonlyArray<PolledEvent>>
  /** Makes claims young again; returns the ids that this owner still holds. */
  readonly renewClaims: (owner: string, eventIds: ReadonlyArray<string>) => Stored<ReadonlyArray<string>>
  /** Gives claims back, so that anyone may take the rows at once. */
  readonly releaseClaims: (owner: string, eventIds: ReadonlyArray<string>) => Stored<number>
  /** DEAD rows, oldest first, from behind a sequence number. */
  readonly queryDead: (filter: DeadFilter, limit: number, afterSeq?: number) => Stored<ReadonlyArray<PolledEvent>>
  /** A DEAD row becomes NEW: attempts 0, available now, error and terminal time cleared. Returns rows changed. */
  readonly replayDead: (eventId: string) => Stored<number>
  readonly countDead: (filter: DeadFilter) => Stored<number>
  /** Deletes at most `limit` DONE and DEAD rows that have been terminal for longer than `retention`, oldest first. */
  readonly purgeTerminal: (retention: Duration.Input, limit: number) => Stored<number>
  /** What `purgeTerminal` would delete now. */
  readonly queryTerminal: (retention: Duration.Input, limit: number) => Stored<ReadonlyArray<PolledEvent>>
  /** Deletes DONE and DEAD rows by id. */
  readonly deleteTerminal: (eventIds: ReadonlyArray<string>) => Stored<number>
  /** Deletes rows by age of creation whatever their state: for writer-only tables that nothing marks (CDC). */
  readonly purgeByAge: (retention: Duration.Input, limit: number) => Stored<number>
  readonly lag: Stored<Lag>
  /** Milliseconds until the next pending row that is not due yet becomes due; undefined when there is none. */
  readonly nextDue: Stored<number | undefined>
}
