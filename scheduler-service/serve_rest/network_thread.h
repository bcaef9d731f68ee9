// Limits cpprestsdk, whose thread pool is global to the process, to one network thread while servers are open.
//
// A response that is sent before the request's body was read closes the socket. With a second thread, the library may
// start to read from that socket at the same moment, and crash. A pool with one thread is not possible either: closing
// a listener blocks a thread until every connection has ended, and connections end on a thread of the pool. Therefore
// the pool has two threads, and the second one is parked except while a server closes.
#pragma once

namespace medley::sched {

// Each server owns one, from before it listens until it has closed. Thread-safe.
class NetworkThread {
 public:
  NetworkThread();
  ~NetworkThread();
  NetworkThread(const NetworkThread&) = delete;
  NetworkThread& operator=(const NetworkThread&) = delete;

  // Call this once, when the server starts to close. From then until the destructor, two threads run.
  void BeginClosing();

 private:
  bool closing_ = false;
};

}  // namespace medley::sched
