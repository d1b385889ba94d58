/** Names that derive from the checked name of the event table, one place for all of them. */

export interface TableNames {
  readonly table: string
  readonly unqualified: string
  readonly bucket: string
  readonly node: string
  readonly sequence: string
  readonly pendingIndex: string
  readonly bucketIndex: string
  readonly terminalIndex: string
  readonly deadIndex: string
  readonly seqIndex: string
  /** The channel of LISTEN and NOTIFY. */
  readonly channel: string
}

export const tableNames = (table: string): TableNames => {
  const unqualified = table.slice(table.lastIndexOf(".") + 1)
  // The seed's index name for the seed's table; other tables of the same schema need names of their own.
  const index = unqualified === "outbox_event" ? "idx" : `idx_${unqualified}`
  return {
    table,
    unqualified,
    bucket: `${table}_bucket`,
    node: `${table}_node`,
    sequence: `${table}_seq`,
    pendingIndex: `${index}_status_available`,
    bucketIndex: `${index}_bucket`,
    terminalIndex: `${index}_terminal`,
    deadIndex: `${index}_dead`,
    seqIndex: `${index}_seq`,
    channel: `${table.replace(".", "_")}_wake`.slice(-63)
  }
}
