// The node's cache of unpacked images. Only root puts images into it.
//
//   <dir>/slots/<n>.lock   held while an image is fetched: at most kImageSlots at a time
//   <dir>/slots/<n>/       workplace of a fetch, emptied by the next one that takes the slot:
//          incoming/       of the job's user: what skopeo wrote; nothing of it is trusted
//          layout/         of root, readable for the slot's uid: what was copied and verified
//          out/            of the slot's uid: the unpacking process can write only here
//   <dir>/images/<key>/    tree/, record.msgpack; it appears whole by one rename
//          proofs/<uid>    this user has brought every byte of it once, so may have it
//          proofs/<uid>.S  ... out of the file with state S (take_in.h)
//   <dir>/images/<key>.lock   shared: a job uses the image; exclusive: it is made or removed
//   <dir>/gone/            what is being removed
//
// A key comes from digests that were computed here (manifest.h). So nobody can put other content
// under a key, and a user who only knows a key gets nothing by it. Layouts of older releases are
// removed.
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
// Each slot has a user id that nobody else has; these ids follow the 65536 of the containers.
inline constexpr std::uint32_t kImageUidBase = 0x70010000;

struct StoreLimits {
  std::int64_t cache_bytes = 0;  // bytes of all unpacked images; images in use stay
  std::int64_t image_bytes = 0;  // bytes of one unpacked image
  std::int64_t image_files = 0;  // files, directories and links of one image
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
// Measures a tree. Links are not followed, and other mounts are not entered. It stops counting
// above the limits; a tree that is too deep counts as one with too many files.
TreeSize tree_size(int dir_fd, const StoreLimits& limits);
// The same for a tree that nobody changes any more; it also removes setuid and setgid bits.
TreeSize settle_tree(int dir_fd, const StoreLimits& limits);

// A slot that is held. When it is let go, its workplace is removed. It is first moved away and
// taken from its user, because a process that still has a directory of it open would go on making
// files there.
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
  // Call it when the node daemon starts: removes what interrupted fetches have left, and images
  // over the limit.
  void tidy_up() const;

  // A user fetches one source only once at a time, and only a few sources at once. So many jobs
  // that start with one image fetch it once, and no user can keep all slots.
  struct Turn {
    Turn() = default;
    Turn(Turn&&) = default;
    Turn& operator=(Turn&&) = delete;
    ~Turn();
    std::string path;
    Fd same_source, one_of_user;
    std::size_t number = 0;  // number among the user's turns; no other turn has it meanwhile
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
  // Empty if the image is not there, or this user has not proved to have it.
  [[nodiscard]] std::optional<Held> find(const std::string& key, Uid uid) const;
  // Finds an image by the state of a file that this user has brought before.
  [[nodiscard]] std::optional<Held> find_by_state(const std::string& state, Uid uid) const;
  // Remembers that this user has brought all bytes of a held image.
  Result<void> prove(const std::string& key, Uid uid, const std::string& state) const;

  // Takes a key's lock alone, to make its image. Another fetch may have made it while this waited.
  [[nodiscard]] Result<Fd> lock_key(const std::string& key, const Stopped& stopped) const;
  [[nodiscard]] bool is_there(const std::string& key) const;
  // Moves the slot's out/tree to images/<key>, whole. Checks it against the limits first and
  // removes setuid bits. The caller must hold lock_key().
  Result<void> keep(const Slot& slot, const std::string& key, ImageRecord record) const;

  // Removes images that no job uses, those not used for longest first, until `more` bytes fit.
  void make_room(std::int64_t more) const;
  [[nodiscard]] std::vector<ListedImage> list() const;  // by key

 private:
  [[nodiscard]] std::string image(const std::string& key) const { return dir_ + "/images/" + key; }
  [[nodiscard]] std::optional<Held> hold(const std::string& key) const;
  bool remove(const std::string& key) const;
  struct Locked {
    Fd lock;
    std::size_t index = 0;  // which of the names was locked
  };
  [[nodiscard]] Result<Locked> lock_one_of(const std::vector<std::string>& names,
                                           const Stopped& stopped) const;

  std::string dir_;
  StoreLimits limits_;
};

}  // namespace gantry::runtime
