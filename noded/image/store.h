// The node's cache of unpacked images. Only root puts images into it.
//
//   <dir>/slots/<n>.lock   held while an image is fetched: at most kImageSlots at a time
//   <dir>/slots/<n>/       work directory of a fetch, emptied by the next one that takes the slot:
//          incoming/       owned by the job's user: skopeo's output, which is not trusted
//          layout/         owned by root, readable for the slot's uid: copied and verified
//          out/            owned by the slot's uid: the unpacking process can write only here
//   <dir>/images/<key>/    tree/, record.msgpack; it appears complete by one rename
//          proofs/<uid>    this user has once provided all its bytes, so may use it
//          proofs/<uid>.S  likewise, from the file with state S (take_in.h)
//   <dir>/images/<key>.lock   shared: a job uses the image; exclusive: it is made or removed
//   <dir>/gone/            what is being removed
//
// A key comes from digests that were computed here (manifest.h). So nobody can put other content
// under a key, and a user who only knows a key cannot use it to get the image. Layouts of older
// releases are removed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"
#include "noded/image/manifest.h"
#include "noded/image/take_in.h"
#include "noded/machine/files.h"

namespace gantry::runtime {

inline constexpr unsigned kImageSlots = 16;
// Each slot has a user id of its own; these ids follow the 65536 of the containers.
inline constexpr std::uint32_t kImageUidBase = 0x70010000;

struct StoreLimits {
  std::int64_t cache_bytes = 0;  // limit on bytes of all unpacked images; images in use stay
  std::int64_t image_bytes = 0;  // limit on bytes of one unpacked image
  std::int64_t image_files = 0;  // limit on files, directories and links of one image
};

struct ImageRecord {
  std::string source;  // the name by which it was first asked for
  ImageConfig config;
  std::int64_t bytes = 0;  // bytes that its tree takes on the disk
  std::int64_t files = 0;
  Instant unpacked{};
  GANTRY_FIELDS(FIELD(1, source), FIELD(2, config), FIELD(3, bytes), FIELD(4, files),
                FIELD(5, unpacked))
};

struct TreeSize {
  std::int64_t bytes = 0;
  std::int64_t files = 0;
};
// Measures a tree. Links are not followed, and other mounts are not entered. It stops counting at
// the limits; a tree that is too deep counts as one with too many files.
TreeSize tree_size(int dir_fd, const StoreLimits& limits);
// The same for a tree that nobody changes any more; it also removes setuid and setgid bits.
TreeSize settle_tree(int dir_fd, const StoreLimits& limits);

// A held slot. When it is released, its work directory is first moved and taken from its user (a
// process with a directory of it open could still make files there), then removed.
struct Slot {
  Slot(Fd held, unsigned n, std::string cache_dir);
  Slot(Slot&&) = default;
  Slot& operator=(Slot&&) = delete;
  ~Slot();
  void clear() const;
  Fd lock;
  unsigned number;
  std::string cache, dir;
  [[nodiscard]] std::uint32_t uid() const { return kImageUidBase + number; }
};

struct ListedImage {
  std::string key;
  ImageRecord record;
  Instant used{};
  bool in_use = false;
};

class ImageStore {
 public:
  ImageStore(std::string dir, StoreLimits limits) : dir_(std::move(dir)), limits_(limits) {}
  [[nodiscard]] const StoreLimits& limits() const { return limits_; }

  Result<void> make() const;  // makes the directories
  // path of skopeo's policy, readable for all
  [[nodiscard]] std::string policy() const { return dir_ + "/policy.json"; }
  // Call it when the node daemon starts: removes the rests of interrupted fetches, and images over
  // the limit.
  void tidy_up() const;

  // A user fetches one source only once at a time, and only a few sources in parallel. So many jobs
  // that start with one image fetch it once, and no user can occupy all slots.
  struct Turn {
    Turn() = default;
    Turn(Turn&&) = default;
    Turn& operator=(Turn&&) = delete;
    ~Turn();
    std::string path;
    Fd same_source, one_of_user;
    std::size_t number = 0;  // number of the fetch among the user's fetches; not shared with
                             // another at the same time
  };
  [[nodiscard]] Result<Turn> take_turn(Uid uid, const std::string& source,
                                       const Stopped& stopped) const;
  // Waits until a slot is free.
  [[nodiscard]] Result<Slot> take_slot(const Stopped& stopped) const;

  // An image in use. It cannot be removed until the descriptor is closed.
  struct Held {
    Fd lock;
    std::string tree;
    ImageRecord record;
  };
  // Empty if the image is not there, or if this user has not proved to have it.
  [[nodiscard]] std::optional<Held> find(const std::string& key, Uid uid) const;
  // Finds an image by the state of a file that this user has provided before.
  [[nodiscard]] std::optional<Held> find_by_state(const std::string& state, Uid uid) const;
  // Records that this user has provided all bytes of a held image.
  Result<void> prove(const std::string& key, Uid uid, const std::string& state) const;

  // Takes a key's lock exclusively, to make its image. Another fetch may have made the image
  // meanwhile.
  [[nodiscard]] Result<Fd> lock_key(const std::string& key, const Stopped& stopped) const;
  [[nodiscard]] bool is_there(const std::string& key) const;
  // Moves the slot's out/tree to images/<key>, by one rename. Checks it against the limits first
  // and removes setuid bits. The caller must hold lock_key().
  Result<void> keep(const Slot& slot, const std::string& key, ImageRecord record) const;

  // Removes images that no job uses, the least recently used first, until `more` bytes fit.
  void make_room(std::int64_t more) const;
  [[nodiscard]] std::vector<ListedImage> list() const;  // by key

 private:
  [[nodiscard]] std::string image(const std::string& key) const { return dir_ + "/images/" + key; }
  [[nodiscard]] std::optional<Held> hold(const std::string& key) const;
  bool remove(const std::string& key) const;
  struct Locked {
    Fd lock;
    std::size_t index = 0;  // index of the name that was locked
  };
  [[nodiscard]] Result<Locked> lock_one_of(const std::vector<std::string>& names,
                                           const Stopped& stopped) const;

  std::string dir_;
  StoreLimits limits_;
};

}  // namespace gantry::runtime
