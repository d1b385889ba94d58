/** Administration of groups: listing and deleting. */
import type { Codec } from "./apis.ts"
import { Writer } from "./writer.ts"

export const ListGroups: Codec<"ListGroups"> = {
  ...{ key: 16, name: "ListGroups", versions: { min: 1, max: 2 }, throttledFrom: 2 },
  encode: () => new Writer().body,
  decode: (reader) => {
    reader.throttle()
    return {
      errorCode: reader.int16(),
      groups: reader.array(() => ({ groupId: reader.string(), protocolType: reader.string() }))
    }
  }
}

export const DeleteGroups: Codec<"DeleteGroups"> = {
  ...{ key: 42, name: "DeleteGroups", versions: { min: 0, max: 1 }, throttledFrom: 1 },
  encode: (groupIds) => new Writer().strings(groupIds).body,
  decode: (reader) => {
    reader.throttle()
    return { results: reader.array(() => ({ groupId: reader.string(), errorCode: reader.int16() })) }
  }
}
