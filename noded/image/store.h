// The node's cache of unpacked images. Nobody but root enters what is in it.
//
//   <dir>/slots/<n>.lock   held by who fetches an image: at most kImageSlots at a time on the node
//   <dir>/slots/<n>/       its workplace, emptied by the next who takes it:
//          incoming/       of the job's user: what skopeo wrote; nothing of it is believed
//          layout/         of root, readable for the slot's uid: what was copied and verified
//          out/            of the slot's uid: unpacked by a process that has nothing else
//   <dir>/images/<key>/    tree/, record.msgpack; it appears whole by one rename
//          proofs/<uid>    this user has brought every byte of it once, so may have it
//          proofs/<uid>.S  ... out of the file with state S (take_in.h)
//   <dir>/images/<key>.lock   shared: a job uses the image; alone: it is made or removed
//   <dir>/gone/            what is being removed
//
// A key comes from digests that were computed here (manifest.h). So nobody can put other content
// under a key, and who only knows one gets nothing by it. Older layouts of the cache are removed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"
#include "noded/image/manifest.h"
#include "noded/image/take_in.h"
#include "noded/machine/files.h"

namespace gantry::runtime {

inline constexpr unsigned kImageSlots = 16;
// Each slot has a user id of its own, that is nobody else's: beside the containers' 65536.
inline constexpr std::uint32_t kImageUidBase = 0x70010000;

struct StoreLimits {
  std::int64_t cache_bytes = 0;  // of all unpacked images; those in use stay
  std::int64_t image_bytes = 0;  // of one, unpacked
  std::int64_t image_files = 0;  // files, directories and links of one
};

struct ImageRecord {
  std::string source;  // as it was named first
  ImageConfig config;
  std::int64_t bytes = 0;  // that its tree takes on the disk
  std::int64_t files = 0;
  Instant unpacked{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "source", s.source);
    v(2, "config", s.config);
    v(3, "bytes", s.bytes);
    v(4, "files", s.files);
    v(5, "unpacked", s.unpacked);
  }
};

struct TreeSize {
  std::int64_t bytes = 0;
  std::int64_t files = 0;
};
// Links are not followed, nor other mounts. Stops counting above the limits; a tree that is too
// deep counts as too many files.
TreeSize tree_size(int dir_fd, const StoreLimits& limits);
// The same for a tree that nobody changes any more; takes away setuid and setgid bits.
TreeSize settle_tree(int dir_fd, const StoreLimits& limits);

// Its workplace is thrown away when it is let go: moved out of the way first, and taken
// from its user, since who still has a directory of it open would go on making files there.
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

  Result<void> make() const;                 // the directories
  [[nodiscard]] std::string policy() const;  // skopeo's, readable for all
  // When the node daemon starts: what fetches that were cut off have left, and images over the
  // limit.
  void tidy_up() const;

  // One fetch of a source at a time for each user, and few of one user altogether: many jobs that
  // start with an image fetch it once, and no user can keep all slots.
  struct Turn {
    Turn() = default;
    Turn(Turn&&) = default;
    Turn& operator=(Turn&&) = delete;
    ~Turn();
    std::string path;
    Fd same_source, one_of_user;
    std::size_t number = 0;  // among the user's own turns; nobody else has it meanwhile
  };
  [[nodiscard]] Result<Turn> take_turn(Uid uid, const std::string& source,
                                       const Stopped& stopped) const;
  // Waits for a free one.
  [[nodiscard]] Result<Slot> take_slot(const Stopped& stopped) const;

  // An image that is held cannot be removed; let go with the descriptor.
  struct Held {
    Fd lock;
    std::string tree;
    ImageRecord record;
  };
  // Empty when it is not there, or not proven for this user.
  [[nodiscard]] std::optional<Held> find(const std::string& key, Uid uid) const;
  // By the state of a file that this user has brought before.
  [[nodiscard]] std::optional<Held> find_by_state(const std::string& state, Uid uid) const;
  // Remembers that this user has brought all bytes of a held image.
  Result<void> prove(const std::string& key, Uid uid, const std::string& state) const;

  // Alone with a key, to make it. Somebody else may have made it while this waited.
  [[nodiscard]] Result<Fd> lock_key(const std::string& key, const Stopped& stopped) const;
  [[nodiscard]] bool is_there(const std::string& key) const;
  // From the slot's out/tree to images/<key>, whole. Checks it against the limits first and takes
  // away setuid bits. Under lock_key().
  Result<void> keep(const Slot& slot, const std::string& key, ImageRecord record) const;

  // Removes those that were used least recently and that no job uses, until `more` bytes fit.
  void make_room(std::int64_t more) const;
  [[nodiscard]] std::vector<ListedImage> list() const;  // by key

 private:
  [[nodiscard]] std::string image(const std::string& key) const { return dir_ + "/images/" + key; }
  [[nodiscard]] std::optional<Held> hold(const std::string& key) const;
  bool remove(const std::string& key) const;
  struct Locked {
    Fd lock;
    std::size_t index = 0;  // of its name
  };
  [[nodiscard]] Result<Locked> lock_one_of(const std::vector<std::string>& names,
                                           const Stopped& stopped) const;

  std::string dir_;
  StoreLimits limits_;
};

}  // namespace gantry::runtime
