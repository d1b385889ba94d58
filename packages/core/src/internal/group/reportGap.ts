/** Reports offsets that no consumer will see. */
import * as Effect from "effect/Effect"
import type { TopicPartition } from "../../ConsumerRecord.ts"
import { type ConsumerContext, report } from "../delivery/consumerContext.ts"
import type { Gap } from "../partition/startPosition.ts"

export const reportGap = (
  context: ConsumerContext<unknown>,
  at: TopicPartition & { readonly generation: number },
  gap: Gap | undefined
): Effect.Effect<void> =>
  Effect.sync(() => {
    if (gap !== undefined) report(context, at, { _tag: "RecordsGone", ...gap })
  })
