/**
 * A record that a handler publishes carries no header of the connector (ruling 70): a handler that forwards the headers of its record would pass on marks that describe
 * another record.
 */
import type { Header, ProducerRecord } from "../../ConsumerRecord.ts"
import * as Names from "./headerNames.ts"

const isOwn = ({ key }: Header): boolean => key.startsWith(Names.prefix)

/** The record without the headers of the connector; the same record when it has none. */
export const withoutOwn = (record: ProducerRecord): ProducerRecord => {
  const { headers } = record
  return headers === undefined || !headers.some(isOwn)
    ? record
    : { ...record, headers: headers.filter((header) => !isOwn(header)) }
}
