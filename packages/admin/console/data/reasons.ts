/** The words for what is not as it should be: what it means for the binding, and what to do. */
import type { Health } from "@eventbus/core"

interface Words {
  /** Follows the name of the binding. */
  readonly is: string
  readonly advice: string
  /** Somebody or something holds records back on purpose. */
  readonly isMild?: true
}

export const words: Readonly<Record<Health.Reason["_tag"], Words>> = {
  ClusterUnreachable: { is: "cannot reach its cluster", advice: "Bindings go on by themselves when a broker answers." },
  ConsumerCrashed: {
    is: "cannot consume",
    advice: "Read its error: usually credentials, ACLs or settings. It is started again until it can run."
  },
  ConsumerFenced: {
    is: "has stopped a consumer for good",
    advice: "Another process uses its group.instance.id. Stop one of the two."
  },
  TopicUnreadable: {
    is: "cannot read a topic",
    advice: "Make the topic, grant the right to read it, or repair the brokers."
  },
  CommitsFailing: { is: "cannot commit", advice: "Grant the group's right Read, or look at its coordinator." },
  TransactionsFailing: {
    is: "cannot end its transactions",
    advice: "Grant the right Write on the transactional id, or look at its coordinator."
  },
  DeadLetterStrategyFailing: {
    is: "cannot work on its dead letters",
    advice: "Grant what the error names. Dead letters are stored all the same."
  },
  OpenTransaction: {
    is: "is held by an open transaction",
    advice: "Find the producer that has left it open. Its coordinator ends it after a while."
  },
  BatchUnreadable: {
    is: "stands in front of a batch that cannot be read",
    advice: "Its partition alone waits. The reason names the remedy."
  },
  UnitIncomplete: {
    is: "waits for its retry partitions",
    advice:
      "Another member has a part of the unit, or the parked keys cannot be looked up: the reason names what is missing."
  },
  PublisherFailing: {
    is: "cannot publish copies",
    advice: "Check the topic that the reason names. Its records wait, and none is lost."
  },
  SerdeWaiting: {
    is: "waits for what its serde needs",
    advice: "Check what the serde asks, such as the schema registry. None is lost."
  },
  PollLoopStuck: { is: "gets no records", advice: "Restart the process, and report it." },
  PartitionStalled: { is: "is stuck", advice: "Find what the handler waits for." },
  BreakerOpen: {
    is: "waits for its circuit breaker",
    advice: "Check the dependency. Records wait, and a few are tried now and then.",
    isMild: true
  },
  Paused: { is: "is paused", advice: "Repair the cause, then resume it.", isMild: true },
  TierPaused: { is: "has a paused retry tier", advice: "Resume the tier when its records may go on.", isMild: true },
  ReadingHolds: { is: "is starting", advice: "It reads the holds of its fleet first, in a moment.", isMild: true },
  Starting: { is: "is starting", advice: "Wait a moment.", isMild: true },
  Closing: { is: "is closing", advice: "The program shuts down.", isMild: true }
}

/** A process of another version may know other reasons. */
export const wordsOf = (reason: string): Words =>
  Object.hasOwn(words, reason)
    ? words[reason as keyof typeof words]
    : { is: "is not as it should be", advice: "The reason says why." }
