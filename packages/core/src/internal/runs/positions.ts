/** Positions as the journal writes them: `{partition}@{offset}` of a dead letter, `{topic}-{partition}@{offset}` of a copy. */
import type { RecordPosition } from "../../ConsumerRecord.ts"
import type { Position } from "../../DeadLetterSelection.ts"

export const textOf = ({ partition, offset }: Position): string => `${partition}@${offset}`

export const copyTextOf = ({ topic, partition, offset }: RecordPosition): string => `${topic}-${partition}@${offset}`

const form = /^(\d{1,10})@(\d{1,19})$/
const copyForm = /^(.+)-(\d{1,10})@(-?\d{1,19})$/

/** The positions among these texts. */
export const read = (texts: ReadonlyArray<string>): ReadonlyArray<Position> =>
  texts.flatMap((text) => {
    const [, partition, offset] = form.exec(text) ?? []
    return partition === undefined ? [] : [{ partition: Number(partition), offset: BigInt(offset!) }]
  })

/** The position of a copy. Its offset is below 0 where the broker did not tell it. */
export const readCopy = (text: string): RecordPosition | undefined => {
  const [, topic, partition, offset] = copyForm.exec(text) ?? []
  return topic === undefined ? undefined : { topic, partition: Number(partition), offset: BigInt(offset!) }
}
