/** The replays of group `billing` in `orders.DLT`, but for the broker and the tiers. */
export const ordersReplay = {
  groupId: "billing",
  adopts: [],
  sourceTopic: "orders",
  deadLetterTopic: "orders.DLT",
  maxReplays: 3,
  maxBufferedBytes: 16_777_216,
  ownsPosition: true,
  hostname: "host-a"
}
