/** The requests by which a member takes part in its group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup. Static members need the newest versions here (KIP-345, Kafka 2.4). */
import type { Codec } from "./apis.ts"
import { Writer } from "./writer.ts"

/** The first versions with a field for `group.instance.id`. */
const instanceIdFrom = { joinGroup: 5, syncGroup: 3, heartbeat: 3, leaveGroup: 3 }

export const JoinGroup: Codec<"JoinGroup"> = {
  ...{ key: 11, name: "JoinGroup", versions: { min: 2, max: 5 }, throttledFrom: 3 },
  // The coordinator waits for all members, for the time of a rebalance at most.
  heldMillis: ({ rebalanceTimeout }) => rebalanceTimeout,
  encode: (payload, version) => {
    const { groupId, sessionTimeout, rebalanceTimeout, memberId, groupInstanceId, groupProtocols } = payload
    const writer = new Writer().string(groupId).int32(sessionTimeout).int32(rebalanceTimeout).string(memberId)
    if (version >= instanceIdFrom.joinGroup) writer.nullableString(groupInstanceId)
    return writer
      .string(payload.protocolType)
      .array(groupProtocols, ({ name, metadata }) => writer.string(name).bytes(metadata)).body
  },
  decode: (reader, version) => {
    reader.throttle()
    return {
      errorCode: reader.int16(),
      generationId: reader.int32(),
      groupProtocol: reader.string(),
      leaderId: reader.string(),
      memberId: reader.string(),
      members: reader.array(() => {
        const memberId = reader.string()
        if (version >= instanceIdFrom.joinGroup) reader.nullableString()
        return { memberId, memberMetadata: reader.bytes() }
      })
    }
  }
}

export const SyncGroup: Codec<"SyncGroup"> = {
  ...{ key: 14, name: "SyncGroup", versions: { min: 1, max: 3 }, throttledFrom: 2 },
  encode: ({ groupId, generationId, memberId, groupInstanceId, groupAssignment }, version) => {
    const writer = new Writer().string(groupId).int32(generationId).string(memberId)
    if (version >= instanceIdFrom.syncGroup) writer.nullableString(groupInstanceId)
    return writer.array(groupAssignment, ({ memberId, memberAssignment }) =>
      writer.string(memberId).bytes(memberAssignment)
    ).body
  },
  decode: (reader) => {
    reader.throttle()
    return { errorCode: reader.int16(), memberAssignment: reader.bytes() }
  }
}

export const Heartbeat: Codec<"Heartbeat"> = {
  ...{ key: 12, name: "Heartbeat", versions: { min: 1, max: 3 }, throttledFrom: 2 },
  encode: ({ groupId, groupGenerationId, memberId, groupInstanceId }, version) => {
    const writer = new Writer().string(groupId).int32(groupGenerationId).string(memberId)
    return (version >= instanceIdFrom.heartbeat ? writer.nullableString(groupInstanceId) : writer).body
  },
  decode: (reader) => {
    reader.throttle()
    return { errorCode: reader.int16() }
  }
}

export const LeaveGroup: Codec<"LeaveGroup"> = {
  ...{ key: 13, name: "LeaveGroup", versions: { min: 1, max: 3 }, throttledFrom: 2 },
  encode: ({ groupId, memberId, groupInstanceId }, version) => {
    const writer = new Writer().string(groupId)
    if (version < instanceIdFrom.leaveGroup) return writer.string(memberId).body
    return writer.int32(1).string(memberId).nullableString(groupInstanceId).body
  },
  decode: (reader) => {
    reader.throttle()
    return { errorCode: reader.int16() }
  }
}
