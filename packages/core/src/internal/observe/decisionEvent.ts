/** Events about decisions of operators. */
import type { RecordPosition } from "../../ConsumerRecord.ts"
import type { KeyDecision } from "../../ParkedKeys.ts"
import type { Decision } from "../../Snapshot.ts"

/** An operator decided about a record that holds its partition, or its key. */
export type DecisionEvent =
  /** An operator decided about a record that held its partition, or that was all that a half-open circuit breaker had to try. */
  | {
      readonly _tag: "RecordDecided"
      /** Where the record lies. */
      readonly at: RecordPosition
      /** The decision and its reason. */
      readonly decision: Decision
    }
  /** An operator decided in this process about a record that holds its key (`perKey.onDeadLetter: "hold"`), whichever process owns its partition. */
  | {
      readonly _tag: "KeyDecided"
      /** Where the held record lies in its source. */
      readonly at: RecordPosition
      /** The decision and its reason. */
      readonly decision: KeyDecision
    }
