/** The settings of Next: a bundle cannot hold the native checksum of `@eventbus/kafkajs`. */
export default { serverExternalPackages: ["@node-rs/crc32"] }
