/** The contract behind `OutboxStore`, and the values that it takes and returns. */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { InvalidEnvelope, OutboxStoreError } from "../../OutboxError.ts"
import type { EventEnvelope } from "../base/envelope.ts"
import type { Dialect } from "./dialect.ts"
import type { InsertStatement } from "./insertStatement.ts"
import type { PolledEvent } from "./rows.ts"
import type { TableNames } from "./tableNames.ts"

/**
 * Restricts a change of state to its rightful owner (ruling 41). `Open`: anybody. `Claim`: the holder of the row's claim. `Buckets`:
 * the holder of the bucket leases, with the epoch of each bucket.
 */
export type Fence =
  | {
      /** No restriction: a table with one node. */
      readonly _tag: "Open"
    }
  | {
      /** Only rows that this owner has claimed. */
      readonly _tag: "Claim"
      /** The name under which the rows were claimed. */
      readonly owner: string
      /** Only claims that are younger than this. Default: of any age. */
      readonly maxAge?: Duration.Input
    }
  | {
      /** Only rows of buckets that this owner leases in the given epochs. */
      readonly _tag: "Buckets"
      /** The name under which the buckets are leased. */
      readonly owner: string
      /** The epoch of each bucket, by bucket. */
      readonly epochs: ReadonlyMap<number, number>
    }

/** The fence that restricts nothing. */
export const openFence: Fence = { _tag: "Open" }

/** A position in the order in which pending rows are read: by due time, then by insertion. */
export interface PollCursor {
  /** Due time of the last row read, in microseconds since the epoch. */
  readonly availableAtMicros: number
  /** Sequence number of the last row read. */
  readonly seq: number
}

/** Which due rows a read returns. */
export interface PollOptions {
  /** The most rows to return, 1 or more. */
  readonly limit: number
  /** Leaves out rows that were created less than this ago. Default 0: none is left out. */
  readonly skipRecent?: Duration.Input
}

/** Which due rows a claim takes, and for whom. */
export interface ClaimOptions extends PollOptions {
  /** The claiming process. Unique per running process, 1 to 128 characters. */
  readonly owner: string
  /** Another owner may take a claim that is older than this. */
  readonly lockTimeout: Duration.Input
}

/** Selects dead events. An absent field selects all. */
export interface DeadFilter {
  /** Only events of this type. */
  readonly eventType?: string
  /** Only events about this type of aggregate. */
  readonly aggregateType?: string
}

/** Selects DEAD rows for an operator. An absent field selects all. */
export interface DeadRowFilter extends DeadFilter {
  /** Only events about the aggregate with this id. */
  readonly aggregateId?: string
  /** Only events with these ids: 1 to 1000 event ids. */
  readonly eventIds?: ReadonlyArray<string>
}

/** One death of one event. An event that is replayed and dies again has died another death. */
export interface Death {
  /** The event's unique id. */
  readonly eventId: string
  /** When it became DEAD, in microseconds since the epoch, by the database's clock. */
  readonly diedAtMicros: number
}

/** A DEAD row without its headers and its payload. */
export interface DeadRow extends Death {
  /** The row's number in insertion order. */
  readonly seq: number
  /** The kind of the event. */
  readonly eventType: string
  /** The kind of the aggregate; `__GLOBAL__` for an event without one. */
  readonly aggregateType: string
  /** The aggregate's id; undefined for an event without one. */
  readonly aggregateId: string | undefined
  /** The tenant; undefined for an event without one. */
  readonly tenantId: string | undefined
  /** Failed deliveries before the one after which the event was given up. */
  readonly attempts: number
  /** Why the event was given up: the error of its last delivery. Undefined when nothing noted one. */
  readonly lastError: string | undefined
  /** The database's time of the insert, in microseconds since the epoch. */
  readonly createdAtMicros: number
}

/** The state of a row. */
export interface RowState extends Death {
  /** The column `status`, as in `EventStatus`. The time of death is the terminal time of a DEAD row, and means nothing for others. */
  readonly status: number
}

/** The statements of an operator. Each changes DEAD rows only, and fails with `OutboxStoreError` when the database refuses or does not answer. */
export interface DeadEventStatements {
  /** Reads DEAD rows in insertion order, from behind a sequence number. */
  readonly page: (filter: DeadRowFilter, limit: number, afterSeq: number) => Stored<ReadonlyArray<DeadRow>>
  /** Reads a DEAD row in full; undefined when no DEAD row has the id. */
  readonly event: (eventId: string) => Stored<PolledEvent | undefined>
  /** The states of the rows with these ids. Rows that are gone are left out. */
  readonly states: (eventIds: ReadonlyArray<string>) => Stored<ReadonlyArray<RowState>>
  /** Makes an event NEW as `replayDead` does, if it is DEAD by this very death. Whether it was. */
  readonly replay: (death: Death) => Stored<boolean>
  /** Deletes the row of an event that is DEAD by this very death. Whether it was. */
  readonly discard: (death: Death) => Stored<boolean>
}

/** How far delivery lags behind. */
export interface Lag {
  /** Number of NEW and RETRY rows. */
  readonly pending: number
  /** Number of DEAD rows. */
  readonly dead: number
  /** Age of the oldest due row in milliseconds, by the database's clock. 0 when none is due. */
  readonly oldestMillis: number
}

/** The rows of the table, for the metrics. */
export interface Figures {
  /** Number of NEW and RETRY rows. */
  readonly pending: number
  /** Number of DEAD rows. */
  readonly dead: number
  /** Age of the oldest NEW or RETRY row in milliseconds, due or not, by the database's clock. 0 when there is none. */
  readonly oldestMillis: number
}

type Stored<A> = Effect.Effect<A, OutboxStoreError>

/** The outbox table as operations (outbox seed §8). Every operation fails with `OutboxStoreError` when the database refuses or does not answer. */
export interface StoreShape {
  /** SQL that differs between the databases. */
  readonly dialect: Dialect
  /** The names of the table and of everything that derives from it. */
  readonly names: TableNames
  /** The effect of `markDone` on a delivered row: `keep` marks it DONE until purge, `delete` removes it. */
  readonly onDone: "keep" | "delete"
  /**
   * The insert of rows with status NEW as text and parameters, for a transaction that Effect does not own. Throws `InvalidEnvelope` when
   * the codec cannot encode an event's headers.
   */
  readonly insertStatements: (
    events: ReadonlyArray<EventEnvelope>,
    claimedBy?: string
  ) => ReadonlyArray<InsertStatement>
  /** Inserts rows with status NEW, in order, in the transaction of this fiber. `claimedBy` takes the claim with the insert. */
  readonly insertNew: (
    events: ReadonlyArray<EventEnvelope>,
    claimedBy?: string
  ) => Effect.Effect<void, OutboxStoreError | InvalidEnvelope>
  /**
   * Marks rows DONE, or deletes them with `onDone: "delete"`. Acts on NEW and RETRY rows only; returns how many changed.
   *
   * `rowAddresses` has the address of each row as it was read, one per id. PostgreSQL finds rows by address in half the time, and by
   * id where a row has moved.
   */
  readonly markDone: (
    eventIds: ReadonlyArray<string>,
    fence?: Fence,
    rowAddresses?: ReadonlyArray<string | undefined>
  ) => Stored<number>
  /**
   * Marks a row RETRY: one attempt more, and available again after `delay` on the database's clock. Returns rows changed.
   *
   * With `attempts`, only a row that still has that many attempts changes. So a mark whose answer got lost can be repeated without
   * counting twice.
   */
  readonly markRetry: (
    eventId: string,
    delay: Duration.Input,
    error: string,
    fence?: Fence,
    attempts?: number
  ) => Stored<number>
  /**
   * Makes NEW and RETRY rows due again after `delay` on the database's clock, without counting an attempt, and releases their claims.
   * Returns rows changed.
   */
  readonly postpone: (
    eventIds: ReadonlyArray<string>,
    delay: Duration.Input,
    error: string,
    fence?: Fence
  ) => Stored<number>
  /** Marks a NEW or RETRY row DEAD, with the error and the time (ruling 40). Returns rows changed. */
  readonly markDead: (eventId: string, error: string, fence?: Fence) => Stored<number>
  /** Reads due rows, oldest first, from behind a cursor. Takes no lock. */
  readonly pollPending: (options: PollOptions & { readonly after?: PollCursor }) => Stored<ReadonlyArray<PolledEvent>>
  /** Claims due rows that nobody holds, for `owner`. Two claimers never get the same row. */
  readonly claimPending: (options: ClaimOptions) => Stored<ReadonlyArray<PolledEvent>>
  /** Renews claims; returns the ids that this owner still holds. */
  readonly renewClaims: (owner: string, eventIds: ReadonlyArray<string>) => Stored<ReadonlyArray<string>>
  /** Releases claims, so that anyone may take the rows at once. Returns rows changed. */
  readonly releaseClaims: (owner: string, eventIds: ReadonlyArray<string>) => Stored<number>
  /** Reads DEAD rows, oldest first, from behind a sequence number (default: from the start). */
  readonly queryDead: (filter: DeadFilter, limit: number, afterSeq?: number) => Stored<ReadonlyArray<PolledEvent>>
  /** Makes a DEAD row NEW: attempts 0, available now, error and terminal time cleared (ruling 42). Returns rows changed. */
  readonly replayDead: (eventId: string) => Stored<number>
  /** Counts DEAD rows. */
  readonly countDead: (filter: DeadFilter) => Stored<number>
  /** The statements of an operator. Optional: a store without them has no `DeadEventOperator`. */
  readonly deadEvents?: DeadEventStatements
  /** Deletes at most `limit` DONE and DEAD rows that have been terminal for longer than `retention`, oldest first. Returns how many. */
  readonly purgeTerminal: (retention: Duration.Input, limit: number) => Stored<number>
  /** Reads the rows that `purgeTerminal` would delete now. */
  readonly queryTerminal: (retention: Duration.Input, limit: number) => Stored<ReadonlyArray<PolledEvent>>
  /** Deletes DONE and DEAD rows by id. Returns how many. */
  readonly deleteTerminal: (eventIds: ReadonlyArray<string>) => Stored<number>
  /** Deletes at most `limit` rows by age of creation, whatever their state. Only for writer-only tables that nothing marks (CDC). */
  readonly purgeByAge: (retention: Duration.Input, limit: number) => Stored<number>
  /** Counts pending and dead rows, and measures the age of the oldest due one. */
  readonly lag: Stored<Lag>
  /** Counts the rows for the metrics. Optional: `lag` stands in for it. */
  readonly figures?: Stored<Figures>
  /** Milliseconds until the next pending row becomes due; undefined when no row waits for its time. */
  readonly nextDue: Stored<number | undefined>
}
