package floodmark;

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.zip.GZIPInputStream;

/**
 * Loads and checks classes ahead of the thread that is going to need them, on a core that would be idle: a start without
 * an archive of classes spends most of its time on that, one class after the other. Nothing is initialised, and what is
 * not there is not missed.
 *
 * <p>Arguments: the list of names, the class to start, and its own arguments.
 */
public final class Ahead extends Thread {
    private final String list;

    private Ahead(String list) {
        super("floodmark-ahead");
        this.list = list;
        setDaemon(true);
    }

    public static void main(String[] arguments) throws Exception {
        new Ahead(arguments[0]).start();
        Class<?> main = Class.forName(arguments[1]);
        Object theirs = Arrays.copyOfRange(arguments, 2, arguments.length);
        main.getMethod("main", String[].class).invoke(null, theirs);
    }

    @Override
    public void run() {
        ClassLoader loader = Ahead.class.getClassLoader();
        try (BufferedReader names =
                new BufferedReader(new InputStreamReader(new GZIPInputStream(new FileInputStream(list)), "UTF-8"))) {
            for (String name = names.readLine(); name != null; name = names.readLine()) {
                load(name, loader);
            }
        } catch (Exception | LinkageError ignored) {
            // A start that is no quicker is still a start.
        }
    }

    private static void load(String name, ClassLoader loader) {
        try {
            // Asking for constructors links a class, which is where it is checked.
            Class.forName(name, false, loader).getDeclaredConstructors();
        } catch (Exception | LinkageError ignored) {
            // Another version of Spark may lack it.
        }
    }
}
