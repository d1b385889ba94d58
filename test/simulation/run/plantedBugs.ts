/**
 * Bugs put in on purpose, between the connector and the world: each stands for a way in which a connector could lose, repeat or mix up records. The rules
 * must see every one of them, or they prove nothing.
 */
import { Effect } from "effect"
import { secondTopic } from "../scenario/secondTopic.ts"
import { figureBugs } from "./bugs/figureBugs.ts"
import { ownerBugs } from "./bugs/ownerBugs.ts"
import type { PlantedBug } from "./bugs/PlantedBug.ts"
import { remakeBugs } from "./bugs/remakeBugs.ts"
import { replayBugs } from "./bugs/replayBugs.ts"
import { transactionBugs } from "./bugs/transactionBugs.ts"
import { changed, chunks, some, withBreaker, withHeader, withoutWaiting } from "./sabotage.ts"

const bugs: ReadonlyArray<PlantedBug> = [
  {
    title: "commits one too far",
    seenBy: ["commits"],
    sabotage: { commit: (offsets) => offsets.map((entry) => ({ ...entry, offset: entry.offset + 1n })) }
  },
  {
    title: "commits one too little",
    seenBy: ["immediate", "handovers", "settling"],
    sabotage: {
      commit: (offsets) => offsets.map((entry) => ({ ...entry, offset: entry.offset > 0n ? entry.offset - 1n : 0n }))
    }
  },
  {
    title: "goes back to the beginning with a commit",
    seenBy: ["commits"],
    sabotage: {
      commit: (() => {
        let sent = 0
        return (offsets) => (++sent % 5 === 0 ? offsets.map((entry) => ({ ...entry, offset: 0n })) : offsets)
      })()
    }
  },
  {
    title: "commits nothing",
    seenBy: ["immediate", "handovers", "settling"],
    sabotage: { commit: () => [] }
  },
  {
    title: "tells the next owner nothing of what is finished behind a wait",
    seenBy: ["handovers", "immediate"],
    needs: some((plan) => plan.tiers.some(({ delayMillis, multiplier }) => delayMillis > 0 && multiplier > 1)),
    sabotage: {
      commit: (offsets) =>
        offsets.map(({ metadata = "", ...entry }) => ({ ...entry, metadata: metadata.replace(/;done=.*/, "") }))
    }
  },
  {
    title: "releases a revoked partition without draining it",
    seenBy: ["handovers", "calls"],
    sabotage: {
      events: () => (event) =>
        event._tag === "Revoked"
          ? Effect.as(event.release, [{ ...event, release: Effect.void }])
          : Effect.succeed([event])
    }
  },
  {
    title: "never releases a revoked partition",
    seenBy: ["releases"],
    sabotage: {
      events: () => (event) => Effect.succeed(event._tag === "Revoked" ? [] : [event])
    }
  },
  {
    title: "does not notice that a partition is lost",
    seenBy: ["calls", "commits", "counts", "publishing", "settling", "losses", "leftovers"],
    needs: ({ intensity }) => intensity === 1,
    sabotage: { events: () => (event) => Effect.succeed(event._tag === "Lost" ? [] : [event]) }
  },
  {
    title: "starts one record behind the committed offset",
    seenBy: ["commits"],
    sabotage: { seek: (offset) => offset + 1n }
  },
  {
    title: "starts one record before the committed offset",
    seenBy: ["calls"],
    sabotage: { seek: (offset) => (offset > 0n ? offset - 1n : offset) }
  },
  {
    title: "never fetches again after back-pressure",
    seenBy: ["losses", "settling"],
    needs: some((plan) => plan.maxBufferedRecords === 1),
    sabotage: { resume: "ignored" }
  },
  {
    title: "drops a chunk",
    seenBy: ["commits", "losses"],
    sabotage: { events: chunks((chunk, odd) => (odd ? [chunk] : [])) }
  },
  {
    title: "forgets the last record of a chunk",
    seenBy: ["commits"],
    sabotage: { events: chunks((chunk) => [{ ...chunk, records: chunk.records.slice(0, -1) }]) }
  },
  {
    title: "hands a chunk over twice",
    seenBy: ["calls", "routes"],
    sabotage: { events: chunks((chunk) => [chunk, chunk]) }
  },
  {
    title: "turns the order of a chunk around",
    seenBy: ["order", "commits", "immediate"],
    needs: some((plan) => plan.processingOrder === "partition"),
    sabotage: { events: chunks((chunk) => [{ ...chunk, records: chunk.records.toReversed() }]) }
  },
  {
    title: "runs records of one partition side by side",
    seenBy: ["order"],
    needs: some((plan) => plan.processingOrder === "partition" && plan.listener === "single"),
    changePlan: (plan) =>
      plan.listener === "single" && plan.processingOrder === "partition" && plan.onExhausted !== "halt"
        ? { ...plan, processingOrder: "unordered" }
        : plan
  },
  {
    title: "runs records of one key side by side",
    seenBy: ["order"],
    needs: some((plan) => plan.processingOrder === "key"),
    changePlan: (plan) => (plan.processingOrder === "key" ? { ...plan, processingOrder: "unordered" } : plan)
  },
  {
    title: "ignores the limit of handlers in flight",
    seenBy: ["in-flight"],
    needs: some((plan) => plan.maxInFlight !== undefined),
    changePlan: (plan) => ({ ...plan, maxInFlight: 1_000 })
  },
  {
    title: "does not wait for the commit of a record",
    seenBy: ["immediate"],
    needs: some((plan) => plan.ackMode === "MANUAL_IMMEDIATE" && plan.processingOrder === "partition"),
    changePlan: (plan) => ({ ...plan, ackMode: "MANUAL" })
  },
  {
    title: "counts a record as handled before its handler has run",
    seenBy: ["routes", "commits", "immediate"],
    needs: some((plan) => plan.listener !== "whole-batch"),
    wrapBinding: withoutWaiting
  },
  {
    title: "gives up after the first attempt",
    seenBy: ["attempts"],
    needs: some((plan) => plan.maxAttempts > 1 && plan.onExhausted === "dead-letter"),
    changePlan: (plan) => ({ ...plan, maxAttempts: 1 })
  },
  {
    title: "forgets that the operator paused",
    seenBy: ["pauses", "figures-shown"],
    needs: ({ actions }) => actions.some((action) => action._tag === "Pause"),
    pause: "forgotten"
  },
  {
    title: "reports a stop without stopping",
    seenBy: ["calls", "leftovers", "settling", "losses", "progress"],
    stop: "forgotten"
  },
  {
    title: "handles the records of a tier before they are due",
    seenBy: ["due-times"],
    needs: some((plan) => plan.tiers.some(({ delayMillis }) => delayMillis > 0)),
    changePlan: (plan) => ({
      ...plan,
      tiers: plan.tiers.map((tier) => ({ ...tier, delayMillis: Math.max(0, tier.delayMillis - 1) }))
    })
  },
  {
    title: "forgets that the waits of a tier grow",
    seenBy: ["due-times"],
    needs: some((plan) => plan.tiers.some(({ delayMillis, multiplier }) => delayMillis > 0 && multiplier > 1)),
    changePlan: (plan) => ({ ...plan, tiers: plan.tiers.map((tier) => ({ ...tier, multiplier: 1 })) })
  },
  {
    title: "delivers once too often in a tier",
    seenBy: ["publishing"],
    needs: some((plan) => plan.tiers.length > 0),
    changePlan: (plan) => ({
      ...plan,
      tiers: plan.tiers.map((tier) => ({ ...tier, maxAttempts: tier.maxAttempts + 1 }))
    })
  },
  {
    title: "tries once too often in place",
    seenBy: ["attempts"],
    changePlan: (plan) => ({ ...plan, maxAttempts: plan.maxAttempts + 1 })
  },
  {
    title: "ignores the limit of a tier",
    seenBy: ["tier-slots", "in-flight"],
    needs: some((plan) => plan.partitions > 1 && plan.tiers.some(({ concurrency }) => concurrency === 1)),
    changePlan: (plan) => ({ ...plan, tiers: plan.tiers.map((tier) => ({ ...tier, concurrency: 100 })) })
  },
  {
    title: "sends records to the last tier at once",
    seenBy: ["publishing"],
    needs: some((plan) => plan.tiers.length > 1 && new Set(plan.tiers.map((tier) => tier.delayMillis)).size > 1),
    sabotage: { copies: (copy) => [{ ...copy, topic: copy.topic.replace(/retry-1$/, "retry-2") }] }
  },
  {
    title: "sends copies of a second topic to the topics of the first",
    seenBy: ["publishing"],
    needs: some((plan) => plan.otherTopics.length > 0),
    sabotage: { copies: (copy) => [{ ...copy, topic: copy.topic.replace(`${secondTopic}.`, "orders.") }] }
  },
  {
    title: "believes the headers of a record of the main topic",
    seenBy: ["origins"],
    sabotage: { copies: (copy) => [withHeader(copy, "x-eventbus-original-topic", "elsewhere")] }
  },
  {
    title: "counts the attempts of every tier from the beginning",
    seenBy: ["publishing"],
    needs: some((plan) => plan.tiers.length > 0),
    sabotage: { copies: (copy) => [withHeader(copy, "x-eventbus-total-attempts", "1")] }
  },
  {
    title: "loses the headers of the user",
    seenBy: ["publishing"],
    sabotage: {
      copies: (copy) => [{ ...copy, headers: (copy.headers ?? []).filter(({ key }) => key.startsWith("x-eventbus-")) }]
    }
  },
  {
    title: "publishes a copy twice",
    seenBy: ["publishing"],
    sabotage: { copies: (copy) => [copy, copy] }
  },
  {
    title: "believes that a copy is stored that was never sent",
    seenBy: ["stored", "losses", "commits", "done"],
    sabotage: { copies: () => [] }
  },
  {
    title: "permits too many trial calls",
    seenBy: ["breaker-permits"],
    needs: some(({ breaker }) => breaker !== undefined),
    changePlan: withBreaker((breaker) => ({ ...breaker, permits: breaker.permits + 3 }))
  },
  {
    title: "shows PAUSED for a breaker without automatic pause",
    seenBy: ["breaker-shown"],
    needs: some(({ breaker }) => breaker?.automaticPauseOnOpen === false),
    changePlan: withBreaker((breaker) => ({ ...breaker, automaticPauseOnOpen: true }))
  },
  {
    title: "calls handlers while the breaker is open",
    seenBy: ["breaker-open"],
    needs: some(({ breaker }) => breaker !== undefined),
    rewriteEvent: (event) => (event._tag === "BreakerChanged" && event.to === "HALF_OPEN" ? [] : [event])
  },
  {
    title: "publishes the record that opened the breaker",
    seenBy: ["breaker-holds"],
    // In other listeners the next call mostly comes before the copy, which another rule sees.
    needs: some(({ breaker, listener }) => breaker !== undefined && listener === "batch"),
    rewriteEvent: (event) =>
      event._tag === "AttemptFailed" && event.retryInMillis === undefined ? [event, changed(event, "OPEN")] : [event]
  },
  {
    title: "publishes the record of a failed trial call",
    seenBy: ["breaker-trials"],
    needs: some(
      ({ breaker, listener, maxAttempts }) => breaker !== undefined && listener === "batch" && maxAttempts > 1
    ),
    rewriteEvent: (event) =>
      event._tag === "AttemptFailed" && event.retryInMillis === undefined
        ? [changed(event, "HALF_OPEN"), event, changed(event, "CLOSED")]
        : [event]
  },
  {
    title: "waits for nothing until its drain times out",
    seenBy: ["drains"],
    needs: ({ actions }) => actions.some((action) => action._tag === "Stop"),
    rewriteEvent: (event) =>
      event._tag === "PartitionReleased" ? [{ ...event, _tag: "DrainTimedOut", unfinished: 1 }, event] : [event]
  }
]

export const plantedBugs: ReadonlyArray<PlantedBug> = [
  ...bugs,
  ...ownerBugs,
  ...transactionBugs,
  ...replayBugs,
  ...remakeBugs,
  ...figureBugs
]
