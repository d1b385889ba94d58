/** All names that derive from the checked name of the event table. */

/** The default event table (outbox seed §4.1). */
export const defaultTable = "outbox_event"

/** The names of the outbox's tables, indexes, sequence and channel. */
export interface TableNames {
  /** The event table, as configured; it may be qualified by a schema. */
  readonly table: string
  /** The event table without its schema. */
  readonly unqualified: string
  /** The table of bucket leases. */
  readonly bucket: string
  /** The table of nodes that share the buckets. */
  readonly node: string
  /** The table of the versions that the tables have. */
  readonly version: string
  /** PostgreSQL's sequence of insertion numbers. */
  readonly sequence: string
  /** Pending rows by due time. */
  readonly pendingIndex: string
  /** Pending rows by bucket. */
  readonly bucketIndex: string
  /** Terminal rows by terminal time. */
  readonly terminalIndex: string
  /** Dead rows. */
  readonly deadIndex: string
  /** MySQL's unique key of insertion numbers. */
  readonly seqIndex: string
  /** The channel of LISTEN and NOTIFY. */
  readonly channel: string
}

/** Derives all names from the name of the event table. */
export const tableNames = (table: string): TableNames => {
  const unqualified = table.slice(table.lastIndexOf(".") + 1)
  // The default table's indexes have the seed's names (outbox seed §4.1). Another table of the same schema needs names of its own.
  const index = unqualified === "outbox_event" ? "idx" : `idx_${unqualified}`
  return {
    table,
    unqualified,
    bucket: `${table}_bucket`,
    node: `${table}_node`,
    version: `${table}_version`,
    sequence: `${table}_seq`,
    pendingIndex: `${index}_status_available`,
    bucketIndex: `${index}_bucket`,
    terminalIndex: `${index}_terminal`,
    deadIndex: `${index}_dead`,
    seqIndex: `${index}_seq`,
    channel: `${table.replace(".", "_")}_wake`.slice(-63)
  }
}
