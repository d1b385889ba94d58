/** Dead letters as a failed handler leaves them, written by a plain producer. */
import * as Bus from "./bus.ts"

/** A letter of the topic; its `cause` overrides or adds headers below `x-eventbus-`. */
export const letterOf = (
  topic: string,
  place: { readonly index: number; readonly partition: number; readonly value: Uint8Array },
  cause: Readonly<Record<string, string>>
) => {
  const headers = {
    "original-topic": topic,
    "original-partition": String(place.partition),
    "original-offset": String(place.index),
    "original-timestamp": "5",
    "dlt-reason": "RETRIES_EXHAUSTED",
    "dlt-timestamp": String(1_000 + place.index),
    "last-exception-message": `order ${place.index} cannot be charged`,
    "replay-count": "0",
    "copy-owner": `${topic}.DLT/${topic}`,
    ...cause
  }
  return {
    ...{
      topic: `${topic}.DLT`,
      partition: place.partition,
      key: Bus.bytes(`order-${place.index}`),
      value: place.value
    },
    headers: Object.entries(headers).map(([key, text]) => ({ key: `x-eventbus-${key}`, value: Bus.bytes(text) }))
  }
}
